import { z } from 'zod';

/** A date, which stands for its first moment in UTC, or a moment of a day. */
export const DateOrTime = z
  .string()
  .max(40)
  .refine((text) => Number.isFinite(Date.parse(text)), 'Write a date or a time, such as 2026-11-01.');
