import type { Mirror } from './mirror.ts';
import type { Operation } from './operations.ts';
import type { Prng } from './prng.ts';

/** What the consumers have learned from answers; and the truth, so that they mostly ask for what can be had. */
export interface Knowledge {
  readonly mirror: Mirror;
  /** What was asked about last: several ask about the same at once. */
  last: string | null;
  readonly sandboxes: string[];
  readonly snapshots: string[];
  /** Creates to repeat word for word. */
  readonly creates: Operation[];
}

/** The states in which an operation can succeed. */
const FITTING: Readonly<Record<string, readonly string[]>> = {
  use: ['ready', 'active'],
  pause: ['ready', 'active'],
  resume: ['paused'],
  snapshot: ['ready', 'active', 'paused'],
  fork: ['ready', 'active', 'paused'],
  extend: ['provisioning', 'ready', 'active', 'paused'],
  recreate: ['provisioning', 'ready', 'active', 'paused', 'failed'],
  destroy: ['provisioning', 'ready', 'active', 'paused', 'failed', 'destroying'],
};

/** Mostly something that fits; now and then what somebody else is at, anything at all, or what never was. */
export function target(prng: Prng, knowledge: Knowledge, kind: string): string {
  const { last, sandboxes, mirror } = knowledge;
  const dice = prng.float();
  if (dice < 0.15 && last !== null) return last;
  if (dice < 0.25) return prng.pickOrNull(sandboxes) ?? 'never-was';
  if (dice < 0.26) return 'never-was';
  const fitting: string[] = [];
  for (const { id, state, workspaceId } of mirror.unfinished.values()) {
    if (workspaceId === 'w1' && (FITTING[kind] ?? []).includes(state)) fitting.push(id);
  }
  knowledge.last = prng.pickOrNull(fitting) ?? prng.pickOrNull(sandboxes) ?? 'never-was';
  return knowledge.last;
}

export function snapshotTarget(prng: Prng, { snapshots, mirror }: Knowledge): string {
  const known = prng.pickOrNull(snapshots);
  if (known !== null && prng.chance(0.5)) return known;
  const present = [...mirror.snapshots.values()].filter(
    ({ state }) => state === 'available' || state === 'creating',
  );
  return prng.pickOrNull(present)?.id ?? known ?? 'never-was';
}
