import type { Price } from '../../contract/money/money.ts';
import type { RoutePlan } from '../../contract/routing/route.ts';

/** A promise about prices: until it expires, a create that names it is charged by these and by no others. */
export interface QuoteRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The digest of the request without its `quote_id`: the promise is about this request. */
  readonly requestDigest: string;
  readonly profile: string;
  readonly seconds: number;
  /** The prices by backend; only these backends may be used with the quote. */
  readonly prices: Readonly<Record<string, Price>>;
  readonly maxChargeMicroUsd: number;
  readonly expectedChargeMicroUsd: number;
  readonly plan: RoutePlan;
}
