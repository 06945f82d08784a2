import type { MeterRecord } from '../meter.ts';
import { mostMicroUsd } from '../meter.ts';
import type { Offer } from '../terms.ts';
import type { Reserve } from './affordable.ts';

/** How a sandbox is paid for ahead. Times are milliseconds. */
export interface FundingRule {
  /** How far ahead a running sandbox is paid for. */
  readonly fundMs: number;
  /** The backend's own end lies this far behind ours: it is paid for too. */
  readonly graceMs: number;
}

/** Part of the time it is paid for ahead, and the rest of its life for one whose backend's end cannot be moved. */
export function leaseEnd(rule: FundingRule, leased: boolean, from: number, deadlineAt: number): number {
  return leased ? Math.min(deadlineAt, from + rule.fundMs) : deadlineAt;
}

/** Returns what an admission reserves for one candidate: the price of the time until its backend would end it by itself. */
export function admissionMicroUsd(rule: FundingRule, offer: Offer, lifeMs: number): number {
  if (offer.payer === 'own_key') return 0;
  return mostMicroUsd(offer, leaseEnd(rule, offer.leased, 0, lifeMs) + rule.graceMs);
}

/** The reserve of an admission: enough for the dearest candidate. */
export function admissionReserve(rule: FundingRule, offers: readonly Offer[], lifeMs: number): Reserve {
  const most = (amounts: readonly number[]) => amounts.reduce((a, b) => Math.max(a, b), 0);
  const own = offers.filter(({ payer }) => payer === 'own_key');
  return {
    amountMicroUsd: most(offers.map((offer) => admissionMicroUsd(rule, offer, lifeMs))),
    ownKeyMicroUsd: most(own.map((offer) => mostMicroUsd(offer, lifeMs + rule.graceMs))),
  };
}

/** Returns when the next stretch is to be paid for: with half of this one left; never when it reaches the deadline. */
export function nextFundAt(rule: FundingRule, fundedUntil: number, deadlineAt: number): number | null {
  const leaseEndsAt = fundedUntil - rule.graceMs;
  return leaseEndsAt >= deadlineAt ? null : leaseEndsAt - rule.fundMs / 2;
}

/** Returns the end of the billed time: time after the deadline, or that the backend did not confirm, is not billed. */
export function billedUntil(meter: MeterRecord, deadlineAt: number, now: number): number {
  return Math.min(now, deadlineAt, meter.fundedUntil ?? deadlineAt);
}
