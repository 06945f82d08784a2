const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
] as const;

/** Formats `45s`, `12m`, `3h20m`, `2d4h`: the largest unit, and the next one where it matters. */
export function shortDuration(seconds: number): string {
  let rest = Math.max(0, Math.round(seconds));
  const first = UNITS.findIndex(([, size]) => rest >= size);
  if (first === -1) return '0s';
  let text = '';
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount === 0 || (text !== '' && unit === 's' && first < 2)) continue;
    text += `${amount}${unit}`;
  }
  return text;
}

/** Formats `3m ago`, `in 2h`, `now`. */
export function relativeTime(iso: string | null, now: number): string {
  if (iso === null) return '-';
  const seconds = (Date.parse(iso) - now) / 1000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds < 0 ? `${shortDuration(-seconds)} ago` : `in ${shortDuration(seconds)}`;
}

/** Formats the time since. */
export function ageOf(iso: string, now: number): string {
  return shortDuration((now - Date.parse(iso)) / 1000);
}

/** Formats a duration: `40ms`, `1.2s`, `1m30s`. */
export function waitText(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)}ms`;
  return ms < 9_950 ? `${(ms / 1000).toFixed(1)}s` : shortDuration(ms / 1000);
}
