import type { Quote } from '../../contract/money/money.ts';
import type { RouteCandidate, RoutePlan } from '../../contract/routing/route.ts';
import type { Extension } from '../ports/extension.ts';
import type { Payer } from '../tenancy/provider-key.ts';
import type { Terms } from './meter.ts';

type PricedCandidate = Pick<RouteCandidate, 'quote' | 'provider_key'>;

/** The terms of one backend for one recipe, and whether the end of its sandboxes can be moved. */
export interface Offer extends Terms {
  readonly extensionId: string;
  readonly priceVersion: string;
  readonly pausedRate: bigint;
  readonly payer: Payer;
  readonly providerKeyId: string | null;
  /** Whether it is paid for in stretches: the backend charges by time, and ends a sandbox by itself at a time that we move. */
  readonly leased: boolean;
}

export function termsOf(quote: Quote | null): Terms {
  return {
    runningRate: BigInt(quote?.pico_usd_per_second ?? 0),
    createFeeMicroUsd: quote?.create_fee_micro_usd ?? 0,
    minimumSeconds: quote?.minimum_seconds ?? 0,
    quantumMs: quote?.quantum_ms ?? 1,
  };
}

/**
 * Turns a quote into terms, which are reserved and charged: the only place that does so. It is the quote of the plan: a later
 * change of price changes nothing for a sandbox that was admitted before.
 */
export function offerOf(candidate: PricedCandidate | undefined, extension: Extension): Offer {
  const quote = candidate?.quote ?? null;
  const key = candidate?.provider_key;
  const payer = key?.scope === 'workspace' ? 'own_key' : 'credits';
  const terms = termsOf(quote);
  return {
    ...terms,
    extensionId: extension.header.id,
    priceVersion: quote?.price_version ?? 'free',
    pausedRate: BigInt(quote?.paused_pico_usd_per_second ?? 0),
    payer,
    providerKeyId: key?.provider_key_id ?? null,
    leased: payer === 'credits' && terms.runningRate > 0n && extension.extendLife !== undefined,
  };
}

/** Returns the offer of a backend as the plan has it. */
export function offerIn(plan: RoutePlan, extension: Extension): Offer {
  const candidate = plan.candidates.find(({ extension: id }) => id === extension.header.id);
  return offerOf(candidate, extension);
}
