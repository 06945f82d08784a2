import { z } from 'zod';
import { MicroUsd } from '../money/money.ts';
import { RoutePlan } from './route.ts';

export const QuoteId = z.string().regex(/^qte_[a-z0-9]{8,64}$/, 'A quote id starts with "qte_".');

/** The expected and the highest cost of a create. A create with the quote's id gets these prices until the quote expires. */
export const SandboxQuote = z
  .strictObject({
    quote_id: QuoteId,
    created_at: z.string(),
    expires_at: z.string(),
    profile: z.string(),
    seconds: z.number().int().describe('The ttl it was asked for.'),
    expected_charge_micro_usd: MicroUsd.describe('Expected cost at the first choice.'),
    max_charge_micro_usd: MicroUsd.describe('A create with this quote is never charged more.'),
    plan: RoutePlan.describe('The candidates as of now, each with its own quote.'),
  })
  .meta({ id: 'SandboxQuote' });
export type SandboxQuote = z.infer<typeof SandboxQuote>;
