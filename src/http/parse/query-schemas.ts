import { z } from 'zod';
import { parseDuration } from '../../contract/values/duration.ts';

/** Query values arrive as text, repeated ones as lists. These read them strictly and document what they mean. */

/** A name that may appear once. */
const once = (value: unknown) => (Array.isArray(value) ? Symbol('repeated') : value);

export function text(most: number) {
  return z.string().min(1).max(most);
}

export function wholeNumber(least: number, most: number) {
  const number = z.number().int().min(least).max(most);
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : once(value)),
    number,
  );
}

export function flag() {
  return z.preprocess((value) => {
    if (value === 'true' || value === '1' || value === '') return true;
    return value === 'false' || value === '0' ? false : once(value);
  }, z.boolean());
}

/** `?state=ready&state=active` and `?state=ready,active` are the same. */
export function listOf<T extends z.ZodType>(item: T, most: number) {
  return z.preprocess(
    (value) => [value].flat().flatMap((part) => (typeof part === 'string' ? part.split(',') : [part])),
    z.array(item).max(most),
  );
}

/** Repeated, with commas that belong to the values. */
export function repeated<T extends z.ZodType>(item: T, most: number) {
  return z.preprocess((value) => [value].flat(), z.array(item).max(most));
}

/** `30s`, `2m` or a number of seconds, as milliseconds. Zero asks without waiting. */
export const timeoutMs = z
  .string()
  .max(40)
  .transform((value, context) => {
    const seconds = /^\d{1,7}(?:\.\d{1,3})?$/.test(value) ? Number(value) : parseDuration(value);
    if (seconds !== null) return seconds * 1000;
    context.addIssue({ code: 'custom', message: 'Write a duration such as "30s" or "2m".' });
    return z.NEVER;
  })
  .meta({ description: 'The longest wait, such as `30s`, `2m` or a number of seconds.' });

export const cursor = text(512).describe('`next_cursor` of the page before.');
