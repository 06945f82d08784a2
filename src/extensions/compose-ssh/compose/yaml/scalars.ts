/** Reads scalars after variables were inserted: `"true"`, `'2'` and `1.5` count as their values. */

export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return null;
}

/** Returns true for every value that any YAML reader could take for true: no spelling may pass a guard. */
export function isTruthy(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0) return false;
  return !/^(?:false|no|off|n|f|0|)$/i.test(String(value).trim());
}

export function numberOf(value: unknown): number | null {
  const text = textOf(value)?.trim() ?? '';
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : null;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Returns the bytes of `512m`, `1.5g`, `64kb`, `1048576`. */
export function bytesOf(value: unknown): number | null {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec((textOf(value) ?? '').trim()) ?? [];
  if (digits === undefined) return null;
  return Math.floor(Number(digits) * (UNITS[unit.toLowerCase()] ?? 1));
}

/** Returns `[a, b]` for `[a, b]`, `[a]` for `a`. */
export function listOf(value: unknown): unknown[] {
  if (value === null || value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}
