import { z } from 'zod';

const SECONDS_PER_UNIT = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;
const DURATION_PATTERN = /^(?:\d{1,9}[smhdw])(?: ?\d{1,9}[smhdw]){0,4}$/;
const LONGEST_SECONDS = 10 * 365 * 86_400;

/** Parses `90s`, `2h`, `1h30m` into whole seconds; `null` when the text is not a duration. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (!DURATION_PATTERN.test(trimmed)) return null;
  let seconds = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+)([smhdw])/g)) {
    seconds += Number(amount) * SECONDS_PER_UNIT[unit as keyof typeof SECONDS_PER_UNIT];
  }
  return seconds > 0 && seconds <= LONGEST_SECONDS ? seconds : null;
}

/** The shortest human spelling that parses back to the same number of seconds. */
export function formatDuration(seconds: number): string {
  const parts: string[] = [];
  let rest = Math.max(0, Math.floor(seconds));
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = SECONDS_PER_UNIT[unit];
    const amount = Math.floor(rest / size);
    if (amount > 0) parts.push(`${amount}${unit}`);
    rest -= amount * size;
  }
  return parts.length > 0 ? parts.join('') : '0s';
}

/** A duration on the wire and in YAML: `"4h"`, `"1h30m"`, or a whole number of seconds. Parsed to seconds. */
export const DurationSeconds = z
  .union([
    z.number().int().positive().max(LONGEST_SECONDS),
    z.string().max(40).regex(DURATION_PATTERN, 'Write a duration such as "30s", "15m", "4h" or "1h30m".'),
  ])
  .transform((value, context) => {
    const seconds = typeof value === 'number' ? value : parseDuration(value);
    if (seconds !== null) return seconds;
    context.addIssue({ code: 'custom', message: 'A duration lies between 1s and 10 years.' });
    return z.NEVER;
  });
