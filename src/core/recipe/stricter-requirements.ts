import type { Requirements } from '../../contract/extensions/capability.ts';
import {
  EgressEnforcement,
  IsolationLevel,
  MemoryOverrun,
  SnapshotKind,
} from '../../contract/extensions/capability.ts';
import type { RoutePolicy } from '../../contract/routing/route.ts';

type Rule = readonly string[] | 'flag' | 'union' | 'same';

/** Merges two demands on one capability. A new requirement does not compile until it has a rule here. */
const RULES = {
  isolation: IsolationLevel.options,
  egress: EgressEnforcement.options,
  snapshot: SnapshotKind.options,
  fork: 'flag',
  pause: 'flag',
  pty: 'flag',
  ports: 'flag',
  watch: 'flag',
  ssh: 'flag',
  dead_man: 'flag',
  persistence: 'same',
  hosting: 'same',
  region: 'same',
  data_residency: 'same',
  gpu: 'same',
  resources: 'union',
  memory_overrun: MemoryOverrun.options,
} as const satisfies Record<keyof Requirements, Rule>;

/** Called with the requirement on which two demands cannot both be met. */
type OnConflict = (field: keyof Requirements, ours: string, theirs: string) => never;

export function stricterIsolation(one: IsolationLevel, other: IsolationLevel | undefined): IsolationLevel {
  return other === undefined ? one : (laterOf(IsolationLevel.options, one, other) as IsolationLevel);
}

/**
 * Returns the requirements that meet both. A flag that is false and a level that asks for nothing are left out: they demand
 * nothing.
 */
export function stricterRequirements(
  ours: Requirements,
  theirs: Requirements,
  onConflict: OnConflict,
): Requirements {
  const merged: Record<string, unknown> = {};
  for (const [field, rule] of Object.entries(RULES) as [keyof Requirements, Rule][]) {
    const value = stricter(rule, ours[field], theirs[field], (one, other) => onConflict(field, one, other));
    if (value !== undefined) merged[field] = value;
  }
  return merged as Requirements;
}

/** `route.constraints` in the words of `requires`. */
export function requirementsOf(
  constraints: RoutePolicy['constraints'],
  onConflict: OnConflict,
): Requirements {
  const {
    require_isolation,
    max_cost_per_hour: _hour,
    max_total_cost: _total,
    max_price: _price,
    ...requirements
  } = constraints ?? {};
  return stricterRequirements(
    requirements,
    require_isolation === undefined ? {} : { isolation: require_isolation },
    onConflict,
  );
}

function stricter(
  rule: Rule,
  one: unknown,
  other: unknown,
  onConflict: (one: string, other: string) => never,
): unknown {
  if (rule === 'flag') return one === true || other === true ? true : undefined;
  if (rule === 'union') {
    const all = [...new Set([...((one as string[]) ?? []), ...((other as string[]) ?? [])])].sort();
    return all.length > 0 ? all : undefined;
  }
  if (one === undefined || other === undefined || one === other) {
    const only = one ?? other;
    return rule !== 'same' && only === rule[0] ? undefined : only;
  }
  if (rule === 'same') return onConflict(String(one), String(other));
  return laterOf(rule, one as string, other as string);
}

function laterOf(weakestFirst: readonly string[], one: string, other: string): string {
  return weakestFirst.indexOf(one) >= weakestFirst.indexOf(other) ? one : other;
}
