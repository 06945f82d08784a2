import { z } from 'zod';

/** Integer micro-USD: exact in JSON up to nine billion dollars. */
export const MicroUsd = z.number().int().min(-Number.MAX_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER);

/** Integer pico-USD as decimal text: rates are too fine for micro-USD and too large for a double. */
export const PicoUsd = z.string().regex(/^\d{1,30}$/, 'A rate is a whole number of pico-USD, as text.');

/** What a backend charges. Rates are per second of the named unit. */
export const Price = z
  .strictObject({
    version: z.string().max(80),
    create_fee_micro_usd: MicroUsd.min(0),
    base_pico_usd_per_second: PicoUsd,
    vcpu_pico_usd_per_second: PicoUsd,
    gib_pico_usd_per_second: PicoUsd,
    gpu_pico_usd_per_second: PicoUsd,
    bills_when_paused: z.boolean(),
    minimum_seconds: z.number().int().min(0),
  })
  .meta({ id: 'Price' });
export type Price = z.infer<typeof Price>;

export const Quote = z
  .strictObject({
    extension: z.string(),
    price_version: z.string(),
    create_fee_micro_usd: MicroUsd,
    pico_usd_per_second: PicoUsd,
    micro_usd_per_hour: MicroUsd,
    seconds: z.number().int(),
    max_charge_micro_usd: MicroUsd.describe('What the whole requested time costs, fee included.'),
  })
  .meta({ id: 'Quote' });
export type Quote = z.infer<typeof Quote>;

/** The usage record of one generation of one sandbox. */
export const Meter = z
  .strictObject({
    meter_id: z.string(),
    sandbox_id: z.string(),
    generation: z.number().int(),
    extension: z.string(),
    price_version: z.string(),
    opened_at: z.string(),
    closed_at: z.string().nullable(),
    billed_seconds: z.number(),
    charged_micro_usd: MicroUsd,
    estimate_micro_usd: MicroUsd,
  })
  .meta({ id: 'Meter' });
export type Meter = z.infer<typeof Meter>;

export const Balance = z
  .strictObject({
    workspace_id: z.string(),
    available_micro_usd: MicroUsd,
    held_micro_usd: MicroUsd,
    spent_micro_usd: MicroUsd,
  })
  .meta({ id: 'Balance' });

export const GrantRequest = z
  .strictObject({
    amount_micro_usd: MicroUsd.min(1).max(1_000_000_000_000),
    reference: z
      .string()
      .max(200)
      .optional()
      .describe('Your own name for this grant; a repeated reference is the same grant.'),
  })
  .meta({ id: 'GrantRequest' });
export type GrantRequest = z.infer<typeof GrantRequest>;

export const Transfer = z
  .strictObject({
    transfer_id: z.string(),
    seq: z.number().int(),
    at: z.string(),
    kind: z.enum(['grant', 'hold', 'capture', 'release']),
    debit: z.string(),
    credit: z.string(),
    amount_micro_usd: MicroUsd,
    hold_id: z.string().nullable(),
    sandbox_id: z.string().nullable(),
  })
  .meta({ id: 'Transfer' });
