import { z } from 'zod';
import { Price } from './money.ts';

const Day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'A date is written YYYY-MM-DD.');

/** How far a figure can be trusted: the vendor states it, a third party states it, or sources disagree. */
const Confidence = z.enum(['documented', 'third-party', 'conflicting']);

/** The known prices of a vendor from a day on, with their source. */
export const ListedPrice = z.strictObject({
  effective_from: Day,
  read_on: Day,
  source: z.string().max(200),
  confidence: Confidence,
  note: z.string().max(400).optional(),
  price: Price,
});
export type ListedPrice = z.infer<typeof ListedPrice>;

/** Time to a usable sandbox as a third party measured it: assumed until this installation has measured its own. */
const ListedLatency = z.strictObject({
  load: z.enum(['alone', 'burst']),
  median_ms: z.number().int().positive(),
  p95_ms: z.number().int().positive(),
  p99_ms: z.number().int().positive(),
  samples: z.number().int().positive(),
  run_on: Day,
  source: z.string().max(200),
});

/** A file of `registry/prices/`. A listed price never changes: a new one is added below it. */
export const PriceListEntry = z
  .strictObject({
    provider: z.string().regex(/^[a-z0-9-]{1,40}$/),
    title: z.string().max(80),
    extension: z.string().nullable(),
    prices: z.array(ListedPrice).min(1).max(100),
    latency: z.array(ListedLatency).max(10),
  })
  .meta({ id: 'PriceListEntry' });
export type PriceListEntry = z.infer<typeof PriceListEntry>;
