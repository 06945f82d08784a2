import { IsolationLevel } from '../../contract/extensions/capability.ts';
import type { HostLoads, HostRecord } from '../hosts/host.ts';
import { LOCAL_HOST } from '../hosts/host.ts';
import { busyShare } from '../hosts/host-facts.ts';
import { hostRegionMisfit } from '../hosts/regions.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';

export interface PlacementInput {
  readonly recipe: Recipe;
  readonly hosts: readonly HostRecord[];
  readonly loads: HostLoads;
  readonly seed: string;
  /** The host that has its source. */
  readonly boundHost: string | null;
}

export interface PlacementDecision {
  readonly hostId: string | null;
  /** The hosts to use when that one cannot be reached, in order. */
  readonly otherHosts: readonly string[];
  readonly reason: string;
  /** Whether no host can take the sandbox. */
  readonly refused: boolean;
  /** Whether the reasons pass by themselves: health and room of hosts. */
  readonly passes: boolean;
}

/** Why a host cannot take a sandbox. */
interface Obstacle {
  readonly why: string;
  readonly passes: boolean;
}

const rankOf = (level: IsolationLevel): number => IsolationLevel.options.indexOf(level);

/** The number of hosts that are looked at: enough to avoid a full one, few enough that a burst does not all see the same best. */
const CHOICES = 3;

/** The weight of the machine's own figures beside our reservations: the figures are older, and others use the machine, too. */
const USAGE_WEIGHT = 0.5;
/** A machine with less than this left fails whatever is put on it. */
const LEAST_MEMORY_MB = 64;
const LEAST_DISK_MB = 256;

function placed(
  hostId: string | null,
  reason: string,
  otherHosts: readonly string[] = [],
): PlacementDecision {
  return { hostId, otherHosts, reason, refused: false, passes: false };
}

function refused(reason: string, passes = false): PlacementDecision {
  return { hostId: null, otherHosts: [], reason, refused: true, passes };
}

/** Hashes by FNV-1a: the same result everywhere and for ever, which is all that is needed. */
function draw(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Returns the share of each bounded capacity that is taken with this sandbox included; above 1 there is no room. */
function fullness(host: HostRecord, input: PlacementInput): { share: number; what: string } {
  const { sandboxes, cpu, memory_mb } = host.spec.capacity;
  const load = input.loads[host.id] ?? { sandboxes: 0, millicpu: 0, memoryMb: 0 };
  const wanted = input.recipe.resources;
  const shares = [
    { what: 'sandboxes', share: sandboxes === null ? 0 : (load.sandboxes + 1) / sandboxes },
    { what: 'cpu', share: cpu === null ? 0 : (load.millicpu / 1000 + (wanted.cpu ?? 0)) / cpu },
    { what: 'memory', share: memory_mb === null ? 0 : (load.memoryMb + (wanted.memory_mb ?? 0)) / memory_mb },
  ];
  const most = shares.reduce((a, b) => (b.share > a.share ? b : a));
  // Without bounds, only the number of neighbours can be compared.
  return most.share > 0 ? most : { what: 'sandboxes', share: 1 - 1 / (load.sandboxes + 1) };
}

export function serves(host: HostRecord, extensionId: string): boolean {
  const { extensions } = host.spec;
  return (
    extensions.length === 0 ||
    extensions.includes(extensionId) ||
    extensions.includes(extensionId.split('#')[0] as string)
  );
}

/** Returns which resource the machine itself reports as used up, or `null`. */
function exhausted({ health: { figures } }: HostRecord): string | null {
  const { memoryAvailableMb: memory = null, diskFreeMb: disk = null } = figures ?? {};
  if (memory !== null && memory < LEAST_MEMORY_MB) return `${memory} MiB of memory are left`;
  return disk !== null && disk < LEAST_DISK_MB ? `${disk} MiB of disk are left` : null;
}

const lasting = (why: string): Obstacle => ({ why, passes: false });
const passing = (why: string): Obstacle => ({ why, passes: true });

/** Returns why this host cannot take the sandbox, or `null`. */
function obstacle(host: HostRecord, header: ExtensionHeader, input: PlacementInput): Obstacle | null {
  const { spec, state, health } = host;
  if (spec.class === 'production') return lasting('is a production host, which is never a target');
  if (!serves(host, header.id)) return lasting(`does not serve ${header.id}`);
  if (state === 'draining') return lasting('is draining');
  const elsewhere = header.runsOn === 'hosts' ? hostRegionMisfit(host, input.recipe.requires) : null;
  if (elsewhere !== null) return lasting(elsewhere);
  const least = rankOf(input.recipe.isolation);
  if (spec.isolation.length > 0 && !spec.isolation.some((level) => rankOf(level) >= least))
    return lasting(`has no isolation ${input.recipe.isolation}`);
  // The machine of the server needs no network to be reached.
  if (spec.ssh !== null && health.status === 'unhealthy') return passing(`is unhealthy: ${health.detail}`);
  const canary = health.canaries?.[header.id];
  if (canary?.status === 'unhealthy') return passing(`fails its canary of ${header.id}: ${canary.detail}`);
  const { share, what } = fullness(host, input);
  if (share > 1) return passing(`has no room: ${what}`);
  const used = exhausted(host);
  return used === null ? null : passing(`has no room: ${used}`);
}

/** The registered hosts that could take the sandbox now. */
export function hostsWithPlace(header: ExtensionHeader, input: PlacementInput): readonly HostRecord[] {
  return input.hosts.filter((host) => host.spec.ssh !== null && obstacle(host, header, input) === null);
}

/** Returns a score, lower is better: what we have reserved and running there, and what the machine reports as in use. */
function scoreOf(host: HostRecord, input: PlacementInput): number {
  const { share } = fullness(host, input);
  const { figures } = host.health;
  const used = figures === undefined ? 0 : USAGE_WEIGHT * busyShare(figures);
  return (input.recipe.placement.strategy === 'pack' ? -share : share) + used;
}

function costOf({ spec }: HostRecord): number {
  return spec.cost_micro_usd_per_hour ?? 0;
}

/** Best of a few drawn by the seed, then the others of them, then the rest. */
function rankTier(tier: readonly HostRecord[], input: PlacementInput): HostRecord[] {
  const drawn = tier
    .map((host) => ({ host, ticket: draw(`${input.seed}|${host.id}`) }))
    .sort((a, b) => a.ticket - b.ticket || (a.host.id < b.host.id ? -1 : 1))
    .map(({ host }) => host);
  const cheapest = input.recipe.route.strategy === 'lowest-cost';
  const best = drawn
    .slice(0, cheapest ? drawn.length : CHOICES)
    .map((host, index) => ({ host, index, score: scoreOf(host, input), cost: costOf(host) }))
    .sort((a, b) => {
      const [byCost, byScore] = [a.cost - b.cost, a.score - b.score];
      return (cheapest ? byCost || byScore : byScore || byCost) || a.index - b.index;
    })
    .map(({ host }) => host);
  return [...best, ...drawn.slice(best.length)];
}

function placeOnHosts(header: ExtensionHeader, input: PlacementInput): PlacementDecision {
  const { recipe } = input;
  const hosts = input.hosts.filter(({ spec }) => spec.ssh !== null);
  const { prefer, fallback, strategy = 'spread' } = recipe.placement;
  const only = input.boundHost ?? recipe.route.host;
  const asked = only === undefined ? hosts : hosts.filter(({ id }) => id === only);
  if (asked.length === 0)
    return refused(only === undefined ? 'no host is registered' : `there is no host ${only}`);
  const judged = asked.map((host) => {
    const found = obstacle(host, header, input);
    return { host, why: found?.why ?? null, passes: found?.passes ?? false };
  });
  const fit = judged.filter(({ why }) => why === null).map(({ host }) => host);
  if (fit.length === 0) {
    const reasons = judged.map(({ host, why }) => `${host.id} ${why}`).join('; ');
    return refused(
      reasons,
      judged.some(({ passes }) => passes),
    );
  }
  const tiers = [
    { name: 'preferred', of: fit.filter(({ id }) => prefer.includes(id)) },
    { name: 'a fallback', of: fit.filter(({ id }) => fallback.includes(id) && !prefer.includes(id)) },
    { name: 'registered', of: fit.filter(({ id }) => !prefer.includes(id) && !fallback.includes(id)) },
  ];
  const ranked = tiers.flatMap(({ name, of }) => rankTier(of, input).map((host) => ({ host, name })));
  const [first, ...others] = ranked as [(typeof ranked)[number], ...typeof ranked];
  const passed = judged.filter(({ why, host }) => why !== null && prefer.includes(host.id));
  const instead = passed.map(({ host, why }) => `, ${host.id} ${why}`).join('');
  const how =
    only === undefined ? `${first.name}, ${strategy} over ${fit.length} of ${hosts.length}` : 'asked for';
  return placed(
    first.host.id,
    `${first.host.id} is ${how}${instead}`,
    others.slice(0, CHOICES - 1).map(({ host }) => host.id),
  );
}

/** Chooses the host of a sandbox. Pure: reservations are the loads, which are sums over rows. */
export function place(header: ExtensionHeader, input: PlacementInput): PlacementDecision {
  const only = input.recipe.route.host;
  if (header.runsOn === 'hosts') return placeOnHosts(header, input);
  if (header.capabilities.hosting === 'saas')
    return only === undefined ? placed(null, 'the vendor places it') : refused(`it does not run on ${only}`);
  if (only !== undefined && only !== LOCAL_HOST) return refused(`it runs on ${LOCAL_HOST}, not on ${only}`);
  const here = input.hosts.find(({ id }) => id === LOCAL_HOST);
  const why = here === undefined ? null : obstacle(here, header, input);
  if (why === null) return placed(LOCAL_HOST, 'the machine of the server');
  return refused(`${LOCAL_HOST} ${why.why}`, why.passes);
}
