import { hash } from 'node:crypto';

/** JSON with sorted keys and no `undefined`: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, child) => {
    if (child === null || typeof child !== 'object' || Array.isArray(child)) return child;
    const sorted: Record<string, unknown> = {};
    for (const key of Object.keys(child).sort()) sorted[key] = (child as Record<string, unknown>)[key];
    return sorted;
  });
}

/** A short name for a value: the first 128 bits of the SHA-256 of its canonical JSON. */
export function digestOf(value: unknown): string {
  return hash('sha256', canonicalJson(value)).slice(0, 32);
}
