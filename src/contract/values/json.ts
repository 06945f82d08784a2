import { z } from 'zod';
import { boundedRecord } from './bounded.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const MAX_DEPTH = 16;

function depthOf(value: unknown, depth = 0): number {
  if (depth > MAX_DEPTH || value === null || typeof value !== 'object') return depth;
  let deepest = depth;
  for (const child of Object.values(value)) deepest = Math.max(deepest, depthOf(child, depth + 1));
  return deepest;
}

/** Any JSON value, bounded in depth so that nothing downstream recurses without end. */
export const JsonValue: z.ZodType<Json> = z
  .any()
  .refine((value) => depthOf(value) <= MAX_DEPTH, `Nest at most ${MAX_DEPTH} levels.`) as never;

export const Labels = boundedRecord(
  z.record(
    z
      .string()
      .regex(
        /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/,
        'A label key has 1–63 letters, digits, ".", "_", "/" or "-".',
      ),
    z.string().max(256),
  ),
  64,
  'At most 64 labels.',
);

/** Environment variables for a process. A NUL byte cannot be passed to a program. */
export const EnvVars = boundedRecord(
  z.record(
    z
      .string()
      .max(256)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'A variable name has letters, digits and "_".'),
    z
      .string()
      .max(131_072)
      .refine((value) => !value.includes('\0'), 'A value cannot hold a NUL byte.'),
  ),
  1024,
  'At most 1024 variables.',
);
