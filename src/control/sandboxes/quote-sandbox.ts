import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { priceOrFree } from '../../core/credits/pricing.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import { unstaged } from '../../core/recipe/input-refs.ts';
import type { QuoteRecord } from '../../core/routing/quote.ts';
import { rankedCandidates } from '../../core/routing/routing.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { planRoute, requireRoute } from './plan-route.ts';
import { resolveRequest } from './resolve-request.ts';

/** The life of a quote: long enough to ask a person, short enough that prices are still true. */
const VALID_MS = 15 * 60_000;

/**
 * Returns a digest of the fields that the price of a request depends on: all others may differ between a quote and its create.
 */
function digestOfPriced({
  profile,
  profile_version,
  ttl,
  resources,
  route,
}: Pick<CreateSandboxRequest, 'profile' | 'profile_version' | 'ttl' | 'resources' | 'route'>): string {
  return digestOf({ profile, profile_version, ttl, resources, route });
}

/** Returns the price of a create on every backend that could take it. The prices hold for as long as the quote does. */
export async function quoteSandbox(
  control: Control,
  caller: Caller,
  request: CreateSandboxRequest,
): Promise<QuoteRecord> {
  requireScope(caller, 'sandboxes');
  const { recipe: resolved, trees } = resolveRequest(control, caller, request);
  const recipe = { ...resolved, trees: unstaged(trees) };
  const id = control.ids.next('qte');
  const recorded = { label: 'quote', action: 'quoteSandbox', target: () => id };
  return recordedTransaction(control, caller, recorded, async (tx) => {
    const plan = await planRoute(tx, control, { workspaceId: caller.workspaceId, recipe, seed: id });
    requireRoute(plan);
    const ranked = rankedCandidates(plan);
    const prices = ranked.map(({ extension }) => [
      extension,
      priceOrFree(control.extensions.get(extension)?.header.price ?? null),
    ]);
    const now = control.clock.now();
    const quote: QuoteRecord = {
      id,
      workspaceId: caller.workspaceId,
      createdAt: now,
      expiresAt: now + VALID_MS,
      requestDigest: digestOfPriced(request),
      profile: `${recipe.profileId}@${recipe.profileVersion}`,
      seconds: recipe.ttlSeconds,
      prices: Object.fromEntries(prices),
      maxChargeMicroUsd: Math.max(0, ...ranked.map(({ quote }) => quote?.max_charge_micro_usd ?? 0)),
      expectedChargeMicroUsd: ranked[0]?.quote?.expected_charge_micro_usd ?? 0,
      plan,
    };
    await tx.quotes.insert(quote);
    return quote;
  });
}

/** Returns the quote that a create names, if it names one; refuses a quote that is not for this request, or over. */
export async function quoteOf(
  tx: Tx,
  deps: ControlPorts,
  caller: Caller,
  request: CreateSandboxRequest,
): Promise<QuoteRecord | null> {
  if (request.quote_id === undefined) return null;
  const refuse = (detail: string, remedy: string) =>
    new SandboxerError('SBX_INVALID_REQUEST', detail, { field: 'quote_id', creation: 'not_created', remedy });
  const quote = await tx.quotes.get(request.quote_id);
  if (!quote || quote.workspaceId !== caller.workspaceId)
    throw refuse(`There is no quote ${request.quote_id}.`, 'Ask for a quote, and create with its id.');
  if (quote.expiresAt <= deps.clock.now()) throw refuse('The quote has expired.', 'Ask for a new quote.');
  if (quote.requestDigest !== digestOfPriced(request))
    throw refuse(
      'The quote is for another profile, ttl, size or route.',
      'Ask for what was quoted, or for a new quote.',
    );
  return quote;
}
