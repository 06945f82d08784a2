import { z } from 'zod';
import { DurationSeconds } from '../values/duration.ts';

/** Integer micro-USD: exact in JSON up to nine billion dollars. */
export const MicroUsd = z.number().int().min(-Number.MAX_SAFE_INTEGER).max(Number.MAX_SAFE_INTEGER);

/** Integer pico-USD as decimal text: rates are too fine for micro-USD and too large for a double. */
export const PicoUsd = z.string().regex(/^\d{1,30}$/, 'A rate is a whole number of pico-USD, as text.');

/**
 * The billed amount of a unit: what was reserved, what was really worked or occupied, the most that was occupied at any time, or
 * the larger of reserved and used.
 */
export const BillingBasis = z.enum(['allocated', 'active', 'used', 'peak', 'max_request_actual']);
export type BillingBasis = z.infer<typeof BillingBasis>;

/** A size that is sold whole. */
export const PriceShape = z.strictObject({
  name: z.string().max(80),
  vcpu: z.number().positive().max(1024),
  memory_mb: z.number().int().positive(),
  pico_usd_per_second: PicoUsd,
});
export type PriceShape = z.infer<typeof PriceShape>;

/** The prices of a backend. Rates are per second of the named unit. */
export const Price = z
  .strictObject({
    version: z.string().max(80),
    create_fee_micro_usd: MicroUsd.min(0),
    base_pico_usd_per_second: PicoUsd,
    vcpu_pico_usd_per_second: PicoUsd,
    gib_pico_usd_per_second: PicoUsd,
    gpu_pico_usd_per_second: PicoUsd.describe('For a GPU that `gpus` does not name.'),
    gpus: z.record(z.string().max(64), PicoUsd).optional().describe('By GPU name.'),
    vcpu_basis: BillingBasis.optional().describe('Allocated unless said otherwise.'),
    memory_basis: BillingBasis.optional().describe('Allocated unless said otherwise.'),
    storage_pico_usd_per_gib_second: PicoUsd.optional(),
    storage_free_gib: z.number().min(0).optional(),
    shapes: z
      .array(PriceShape)
      .max(64)
      .optional()
      .describe('Sold in these sizes only: the cheapest that covers the request, in place of unit rates.'),
    region_multipliers: z
      .record(z.string().max(64), z.number().positive().max(100))
      .optional()
      .describe('By region; 1 for a region that is not named.'),
    bills_when_paused: z.boolean(),
    minimum_seconds: z.number().int().min(0),
    quantum_ms: z
      .number()
      .int()
      .min(1)
      .max(86_400_000)
      .optional()
      .describe('Time is rounded up to a multiple of this.'),
  })
  .meta({ id: 'Price' });
export type Price = z.infer<typeof Price>;

export const Quote = z
  .strictObject({
    extension: z.string(),
    price_version: z.string(),
    create_fee_micro_usd: MicroUsd,
    pico_usd_per_second: PicoUsd.describe('The most that a second can cost.'),
    paused_pico_usd_per_second: PicoUsd,
    micro_usd_per_hour: MicroUsd,
    minimum_seconds: z.number().int(),
    quantum_ms: z.number().int(),
    seconds: z.number().int(),
    max_charge_micro_usd: MicroUsd.describe('Cost of the whole requested time, fee included.'),
    expected_charge_micro_usd: MicroUsd.describe('Expected cost, by figures of similar sandboxes.'),
  })
  .meta({ id: 'Quote' });
export type Quote = z.infer<typeof Quote>;

/**
 * How well all of the billed time is known, best first: the vendor's own bill, a figure of the vendor's that covers all of
 * it, our own clock.
 */
export const Evidence = z.enum(['provider_exact', 'provider_observed', 'own_clock']);
export type Evidence = z.infer<typeof Evidence>;

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
    payer: z
      .enum(['credits', 'own_key'])
      .describe('`own_key`: the vendor bills you; nothing is charged here.'),
    provider_key_id: z.string().nullable(),
    evidence: Evidence.describe(
      '`provider_observed` only where the backend’s own figure covers all of the billed time; else `own_clock`.',
    ),
    observed_seconds: z
      .number()
      .nullable()
      .describe('Of the billed seconds, those that the backend’s figure covers; the rest is by our clock.'),
  })
  .meta({ id: 'Meter' });
export type Meter = z.infer<typeof Meter>;

export const Balance = z
  .strictObject({
    workspace_id: z.string(),
    available_micro_usd: MicroUsd,
    held_micro_usd: MicroUsd,
    spent_micro_usd: MicroUsd,
    purse: z.string().describe('The account it spends from: its own, or one that its org shares.'),
    expiring_micro_usd: MicroUsd.describe('Rest of the credits that end first.'),
    expires_at: z.string().nullable().describe('When they end; `null` when none do.'),
  })
  .meta({ id: 'Balance' });

export const GrantRequest = z
  .strictObject({
    amount_micro_usd: MicroUsd.min(1).max(1_000_000_000_000),
    kind: z
      .enum(['grant', 'top_up'])
      .default('grant')
      .describe('`top_up` records credits that were paid for.'),
    expires_in: DurationSeconds.optional().describe(
      'Unspent credits are taken back then; credits that end first are spent first.',
    ),
    reference: z
      .string()
      .max(200)
      .optional()
      .describe(
        'Your own name for this grant; a repeated reference is the same grant, and is refused (422) with another amount or kind.',
      ),
  })
  .meta({ id: 'GrantRequest' });
export type GrantRequest = z.infer<typeof GrantRequest>;

export const TransferKind = z.enum([
  'grant',
  'top_up',
  'expiry',
  'move',
  'hold',
  'capture',
  'release',
  'correction',
  'cost',
  'insurance',
  'hedge',
  'own_key',
  'budget_hold',
  'budget_capture',
  'budget_release',
]);
export type TransferKind = z.infer<typeof TransferKind>;

export const Transfer = z
  .strictObject({
    transfer_id: z.string(),
    seq: z.number().int(),
    at: z.string(),
    kind: TransferKind,
    debit: z.string(),
    credit: z.string(),
    amount_micro_usd: MicroUsd,
    hold_id: z.string().nullable(),
    price_version: z.string().nullable(),
    linked_to: z.string().nullable().describe('For a correction: the transfer it puts right.'),
    reference: z.string().nullable(),
    hash: z.string().describe('Over the hash before it and everything in this transfer.'),
    sandbox_id: z.string().nullable(),
  })
  .meta({ id: 'Transfer' });
