import { UsageError } from '../failures/usage-error.ts';

const DURATION = /^\d{1,9}[smhdw](?: ?\d{1,9}[smhdw]){0,4}$/;
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;

/** Parses `90s`, `2h`, `1h30m`, or a number of seconds; returns it unchanged. */
export function duration(text: string): string | number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text);
  if (DURATION.test(text)) return text;
  throw new UsageError(`"${text}" is not a duration.`, 'Write a duration such as 30s, 15m, 4h or 1h30m.');
}

export function durationSeconds(text: string): number {
  const value = duration(text);
  if (typeof value === 'number') return value;
  let seconds = 0;
  for (const [, amount, unit] of value.matchAll(/(\d+)([smhdw])/g)) {
    seconds += Number(amount) * SECONDS[unit as keyof typeof SECONDS];
  }
  return seconds;
}

export function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`"${text}" is no whole number.`, 'Write digits alone, such as 20.');
}

export function decimalNumber(text: string): number {
  if (/^\d{1,12}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  throw new UsageError(`"${text}" is not a number.`, 'Write a number such as 2 or 0.5.');
}

const SIZE = /^(\d{1,9}(?:\.\d{1,3})?) ?([mgt])(i?)(b?)$/i;

/** Parses `2gb`, `512 MiB`, `1.5G`, and returns the spelling of the API; a plain number is mebibytes. */
export function size(text: string): string {
  if (/^[1-9]\d{0,8}$/.test(text)) return `${text}MiB`;
  const [, amount, unit = '', binary = '', bytes = ''] = SIZE.exec(text) ?? [];
  if (amount === undefined || (binary !== '' && bytes === ''))
    throw new UsageError(`"${text}" is not a size.`, 'Write a size such as 512MB or 2GiB.');
  return `${amount}${unit.toUpperCase()}${binary.toLowerCase()}${bytes.toUpperCase()}`;
}

/** Parses `5`, `$5`, `0.25`: US dollars, as whole millionths. */
export function microUsd(text: string): number {
  const match = /^\$?(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text.trim());
  const amount = match ? Number(match[1]) * 1_000_000 + Number((match[2] ?? '').padEnd(6, '0')) : 0;
  if (amount > 0) return amount;
  throw new UsageError(`"${text}" is not an amount.`, 'Write US dollars, such as 5 or 0.25.');
}

export interface PortPair {
  readonly local: number;
  readonly remote: number;
}

/** Parses `8080`, or `9000:8080` for another port on this side; 0 takes any free port. */
export function portPair(text: string): PortPair {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text);
  const remote = Number(match?.[2] ?? 0);
  const local = match?.[1] === undefined ? remote : Number(match[1]);
  if (match && remote >= 1 && remote <= 65_535 && local <= 65_535) return { local, remote };
  throw new UsageError(`"${text}" is not a port.`, 'Write [local:]remote, such as 8080 or 9000:8080.');
}
