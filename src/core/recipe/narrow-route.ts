import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Profile } from '../../contract/profiles/profile.ts';
import type { MaxPrice, RoutePolicy } from '../../contract/routing/route.ts';

type Ids = readonly string[];

/**
 * The profile's route as narrowed by a request: whatever the result allows, the profile alone allowed too. An empty
 * `only` or `order` says nothing, as in SPEC §8. Of the constraints only the price ceilings stay: the others have
 * become requirements.
 */
export function narrowRoute(profile: Profile, request: RoutePolicy = {}): RoutePolicy {
  const ours = profile.route;
  const strategy = narrowStrategy(ours, request);
  const permitted = permittedBy(profile);
  for (const field of ['order', 'fallback'] as const) {
    const outside = request[field]?.find((id) => !ours[field]?.includes(id) && !covers(permitted, id));
    if (outside !== undefined) refuse(`route.${field}`, profile, `does not allow ${outside}`, permitted);
  }

  const only = narrowOnly(profile, request, permitted);
  const isExplicit = strategy === 'explicit' && profile.extension === null;
  const order =
    filled(request.order) ?? filled(ours.order) ?? (isExplicit ? reachable(only, permitted) : null);
  if (isExplicit && !order) {
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      'An explicit route names its backends; this one names none.',
      {
        field: 'route.order',
        remedy: 'List the backends in route.order, or choose another strategy.',
      },
    );
  }
  const ignore = [...new Set([...(ours.ignore ?? []), ...(request.ignore ?? [])])].sort();
  const fallback = request.fallback ?? ours.fallback;
  const ceilings = lowerCeilings(ours.constraints, request.constraints);

  return {
    ...(strategy && { strategy }),
    ...(order && { order }),
    ...(only && { only }),
    ...(ignore.length > 0 && { ignore }),
    ...((ours.allow_fallbacks === false || request.allow_fallbacks === false) && { allow_fallbacks: false }),
    ...(fallback && { fallback }),
    ...narrowHost(ours, request),
    ...preferences(ours, request),
    ...narrowHedge(ours, request),
    ...(ceilings && { constraints: ceilings }),
  };
}

function narrowHost(ours: RoutePolicy, request: RoutePolicy): RoutePolicy {
  const host = request.host ?? ours.host;
  if (ours.host !== undefined && host !== ours.host)
    throw new SandboxerError('SBX_INVALID_REQUEST', `The profile is bound to the host ${ours.host}.`, {
      field: 'route.host',
      remedy: 'Leave out route.host.',
    });
  return host === undefined ? {} : { host };
}

/** Decides on hedging. One `off` is enough: a second attempt runs the setup a second time. */
function narrowHedge(ours: RoutePolicy, request: RoutePolicy): RoutePolicy {
  const asked = [ours.hedge, request.hedge];
  if (!asked.includes('auto') || asked.includes('off')) return {};
  const after = request.hedge_after ?? ours.hedge_after;
  return { hedge: 'auto', ...(after !== undefined && { hedge_after: after }) };
}

const PREFERENCES = ['sort', 'value_of_time', 'preferred_max_tti', 'affinity_key', 'expect'] as const;

/** Returns the fields that only rank and never allow: the request wins. */
function preferences(ours: RoutePolicy, request: RoutePolicy): RoutePolicy {
  const given = PREFERENCES.map((name) => [name, request[name] ?? ours[name]]);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** Returns the route without the fields that only rank: two such routes lead to the same kinds of sandbox. */
export function withoutPreferences(route: RoutePolicy): RoutePolicy {
  const ranking: readonly string[] = [...PREFERENCES, 'hedge', 'hedge_after'];
  return Object.fromEntries(Object.entries(route).filter(([name]) => !ranking.includes(name)));
}

type Constraints = NonNullable<RoutePolicy['constraints']>;

/** The lower of each two price ceilings; `null` when there is none. */
export function lowerCeilings(one: Constraints = {}, other: Constraints = {}): Constraints | null {
  const hourly = lowerPrice(one.max_cost_per_hour, other.max_cost_per_hour);
  const total = lowerPrice(one.max_total_cost, other.max_total_cost);
  const units = [
    ...new Set([...Object.keys(one.max_price ?? {}), ...Object.keys(other.max_price ?? {})]),
  ].sort();
  const unitPrices = Object.fromEntries(
    (units as (keyof MaxPrice)[]).map((unit) => [
      unit,
      lowerPrice(one.max_price?.[unit], other.max_price?.[unit]),
    ]),
  );
  const lower = {
    ...(hourly !== null && { max_cost_per_hour: hourly }),
    ...(total !== null && { max_total_cost: total }),
    ...(units.length > 0 && { max_price: unitPrices as MaxPrice }),
  };
  return Object.keys(lower).length > 0 ? lower : null;
}

function narrowStrategy(ours: RoutePolicy, request: RoutePolicy): RoutePolicy['strategy'] {
  if (ours.strategy === 'explicit' && request.strategy !== undefined && request.strategy !== 'explicit') {
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      'The profile routes explicitly; a request cannot widen that.',
      {
        field: 'route.strategy',
        remedy: 'Leave out route.strategy.',
      },
    );
  }
  return request.strategy ?? ours.strategy;
}

/** Returns every backend the profile can end on; `null` when it names none and so allows any. */
function permittedBy({ extension, route }: Profile): Ids | null {
  const only = filled(route.only);
  const fallback = route.fallback ?? [];
  const named =
    extension !== null
      ? [extension, ...fallback]
      : route.strategy === 'explicit'
        ? [...(filled(route.order) ?? only ?? []), ...fallback]
        : null;
  return named && only ? intersect(named, only) : (named ?? only);
}

function narrowOnly(profile: Profile, request: RoutePolicy, permitted: Ids | null): string[] | null {
  const ours = filled(profile.route.only);
  const asked = filled(request.only);
  if (!asked) return ours;
  const both = ours ? intersect(asked, ours) : asked;
  return reachable(both, permitted)
    ? both
    : refuse('route.only', profile, `allows none of ${asked.join(', ')}`, permitted);
}

/** `ext.e2b` stands for all of its instances, `ext.e2b#eu` for one. */
function covers(list: Ids | null, id: string): boolean {
  return list === null || list.includes(id) || list.includes(id.split('#')[0] as string);
}

function intersect(left: Ids, right: Ids): string[] {
  const both = [...left.filter((id) => covers(right, id)), ...right.filter((id) => covers(left, id))];
  return [...new Set(both)];
}

function reachable(ids: Ids | null, permitted: Ids | null): string[] | null {
  return ids && filled(permitted ? intersect(ids, permitted) : ids);
}

function lowerPrice(one: number | null | undefined, other: number | null | undefined): number | null {
  const prices = [one, other].filter((price) => typeof price === 'number');
  return prices.length > 0 ? Math.min(...prices) : null;
}

function filled<T>(list: readonly T[] | undefined): T[] | null {
  return list && list.length > 0 ? [...list] : null;
}

function refuse(field: string, profile: Profile, problem: string, permitted: Ids | null): never {
  throw new SandboxerError('SBX_INVALID_REQUEST', `The route of ${profile.id} ${problem}.`, {
    field,
    remedy: `Name only ${permitted?.join(', ') || 'nothing'}, or choose another profile.`,
  });
}
