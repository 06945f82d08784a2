import { SandboxerError } from '../../contract/errors/errors.ts';
import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { RoutePlan } from '../../contract/routing/route.ts';
import { placeOn } from '../../core/health/health-book.ts';
import type { HostRecord } from '../../core/hosts/host.ts';
import { LOCAL_HOST } from '../../core/hosts/host.ts';
import type { ExtensionHeader } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import { underPolicy } from '../../core/recipe/under-policy.ts';
import { expectedUse } from '../../core/routing/expected-use.ts';
import type { QuoteRecord } from '../../core/routing/quote.ts';
import { decide, rankedCandidates, routeTargets } from '../../core/routing/routing.ts';
import type { KeyChoice } from '../../core/tenancy/provider-key.ts';
import { chooseKeys } from '../../core/tenancy/provider-key.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

export interface PlanOptions {
  readonly seed: string;
  /** The only backend that has what it starts from. */
  readonly boundTo?: string | null;
  /** The only host that has it. */
  readonly boundHost?: string | null;
  readonly quote?: QuoteRecord | null;
  /** The vendor's key that made its source, or `null` for none: another account does not have the source. */
  readonly boundKey?: string | null;
}

interface StandingsQuery {
  readonly extensions: readonly ExtensionHeader[];
  readonly hosts: readonly HostRecord[];
  readonly recipe: Recipe;
  readonly now: number;
}

/** Returns the standing of each backend, and of it on each host where it was tried. */
function standings(
  { health, extensions: registry }: ControlPorts,
  { extensions, hosts, recipe, now }: StandingsQuery,
): Record<string, BackendStanding> {
  const known: Record<string, BackendStanding> = {};
  for (const header of extensions) {
    const { status } = registry.health(header.id);
    known[header.id] = health.standing(header, status, recipe, now);
    if (header.runsOn !== 'hosts') continue;
    for (const { id } of hosts) {
      const there = health.standingOn(id, header, { probe: status, recipe, now });
      if (there) known[placeOn(header.id, id)] = there;
    }
  }
  return known;
}

/** Whether the load of a host counts. The machine of the server has room unless its capacity is configured. */
function isCounted({ spec: { ssh, capacity } }: HostRecord): boolean {
  return ssh !== null || Object.values(capacity).some((most) => most !== null);
}

interface PlanRequest extends PlanOptions {
  readonly workspaceId: string;
  readonly recipe: Recipe;
}

/** Plans a route inside a transaction, with what the workspace allows at the moment of the decision. */
export async function planRoute(
  tx: Tx,
  deps: ControlPorts,
  {
    workspaceId,
    recipe: wanted,
    seed,
    boundTo = null,
    boundHost = null,
    quote = null,
    boundKey,
  }: PlanRequest,
): Promise<RoutePlan> {
  const policy = (await tx.tenancy.workspace(workspaceId))?.policy ?? null;
  const recipe = underPolicy(wanted, policy);
  const extensions = deps.extensions.all().map((extension) => extension.header);
  const now = deps.clock.now();
  // Hosts and loads are read in the transaction that will reserve: of a burst, each request sees what the one before has taken.
  const onHosts = extensions.some(({ runsOn }) => runsOn === 'hosts');
  const here = onHosts ? null : await tx.hosts.get(LOCAL_HOST);
  const hosts = onHosts ? await tx.hosts.list() : here === null ? [] : [here];
  const loads = await tx.attempts.hostLoads(hosts.filter(isCounted).map(({ id }) => id));
  const keys = await keysFor(tx, deps, workspaceId, boundKey);
  return decide({
    recipe,
    extensions,
    catalogueVersion: deps.extensions.version,
    standing: standings(deps, { extensions, hosts, recipe, now }),
    healthAt: now,
    expected: expectedUse(recipe, deps.uses.learned(workspaceId, recipe.profileId)),
    allowed: policy?.only ?? null,
    boundTo,
    quoted: quote?.prices ?? null,
    seed,
    boundHost,
    hosts,
    loads,
    ...(keys && { keys }),
  });
}

/** Keys are read only where a backend takes keys at all. */
async function keysFor(
  tx: Tx,
  deps: ControlPorts,
  workspaceId: string,
  boundKey: string | null | undefined,
): Promise<Readonly<Record<string, KeyChoice>> | null> {
  const takesKeys = deps.extensions.all().some(({ checkKey }) => checkKey !== undefined);
  if (!takesKeys || boundKey === null) return null;
  const keys = await tx.providerKeys.usableBy(workspaceId);
  if (keys.length === 0) return null;
  return chooseKeys(boundKey === undefined ? keys : keys.filter(({ id }) => id === boundKey));
}

/** Records the first choice as a trial: where a half-open backend is tried again, no other create tries it. */
export function takeTrials({ health, clock }: ControlPorts, plan: RoutePlan): void {
  const [first] = routeTargets(plan);
  if (first) health.takeTrial({ extensionId: first.extension, hostId: first.host }, clock.now());
}

/**
 * Returns the seconds until the first candidate that only passing reasons exclude may be free again; `null` when there is none.
 */
function passesAfter({ candidates }: RoutePlan): number | null {
  const waits = candidates
    .map(({ excluded_by }) => excluded_by.map(({ retry_after_seconds }) => retry_after_seconds ?? Infinity))
    .map((seconds) => Math.max(...seconds))
    .filter(Number.isFinite);
  return waits.length > 0 ? Math.min(...waits) : null;
}

/** Refuses with every candidate and what excludes it, when no candidate is left. */
export function requireRoute(plan: RoutePlan): void {
  if (rankedCandidates(plan).length > 0) return;
  const why = plan.candidates.map(
    ({ extension, excluded_by }) => `${extension}: ${excluded_by.map(({ detail }) => detail).join(', ')}`,
  );
  const retryAfterSeconds = passesAfter(plan);
  throw new SandboxerError('SBX_NO_ROUTE', [plan.reason, why.join('; ')].filter(Boolean).join(' '), {
    creation: 'not_created',
    ...(retryAfterSeconds !== null && {
      retryable: true,
      retryAfterSeconds,
      remedy: `Try again in ${retryAfterSeconds} s, or ask for less than what excludes the other candidates.`,
    }),
    members: { reason: plan.reason, candidates: plan.candidates },
  });
}
