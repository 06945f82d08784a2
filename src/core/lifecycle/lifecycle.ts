import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxState } from '../../contract/values/state.ts';

export interface Transition {
  readonly from: SandboxState;
  readonly to: SandboxState;
  /** The cause of the transition, for the generated diagram and for readers. */
  readonly by: string;
}

/** SPEC §3 as data. Nothing moves a sandbox except along one of these rows. */
export const TRANSITIONS: readonly Transition[] = [
  { from: 'requested', to: 'provisioning', by: 'a worker claims it and journals the first attempt' },
  { from: 'requested', to: 'failed', by: 'nothing is left to try' },
  { from: 'requested', to: 'expired', by: 'the deadline passed' },
  { from: 'requested', to: 'destroying', by: 'destroy' },
  { from: 'provisioning', to: 'ready', by: 'the reachability probe succeeded' },
  { from: 'provisioning', to: 'failed', by: 'every candidate failed' },
  { from: 'provisioning', to: 'expired', by: 'the deadline passed' },
  { from: 'provisioning', to: 'destroying', by: 'destroy' },
  { from: 'ready', to: 'active', by: 'first use' },
  { from: 'ready', to: 'paused', by: 'pause, or its backend stopped it and kept its disk' },
  { from: 'ready', to: 'expired', by: 'the deadline or the idle limit passed' },
  { from: 'ready', to: 'failed', by: 'the backend lost it' },
  { from: 'ready', to: 'destroying', by: 'destroy' },
  { from: 'active', to: 'paused', by: 'pause, or its backend stopped it and kept its disk' },
  { from: 'active', to: 'expired', by: 'the deadline or the idle limit passed' },
  { from: 'active', to: 'failed', by: 'the backend lost it' },
  { from: 'active', to: 'destroying', by: 'destroy' },
  { from: 'paused', to: 'active', by: 'resume' },
  { from: 'paused', to: 'expired', by: 'the deadline passed' },
  { from: 'paused', to: 'failed', by: 'the backend lost it' },
  { from: 'paused', to: 'destroying', by: 'destroy' },
  { from: 'expired', to: 'destroying', by: 'the reaper' },
  { from: 'failed', to: 'destroying', by: 'destroy, recreate, or the deadline' },
  { from: 'destroying', to: 'destroyed', by: 'the backend confirmed that nothing is left' },
  { from: 'destroying', to: 'requested', by: 'recreate: the next generation starts' },
];

const ALLOWED: ReadonlySet<string> = new Set(TRANSITIONS.map(({ from, to }) => `${from}>${to}`));

export function canMove(from: SandboxState, to: SandboxState): boolean {
  return ALLOWED.has(`${from}>${to}`);
}

export function assertMove(from: SandboxState, to: SandboxState): void {
  if (canMove(from, to)) return;
  throw new SandboxerError('SBX_INVALID_STATE', `A sandbox that is ${from} cannot become ${to}.`);
}

/** The states in which a sandbox is meant to exist and to be used: it counts, it can be reused, its deadline is watched. */
export const LIVING_STATES = [
  'requested',
  'provisioning',
  'ready',
  'active',
  'paused',
] as const satisfies SandboxState[];
/** The meter runs in these, and an exec is possible in the first two. */
const ESTABLISHED_STATES = ['ready', 'active', 'paused'] as const satisfies SandboxState[];

const LIVING: ReadonlySet<SandboxState> = new Set(LIVING_STATES);
const ESTABLISHED: ReadonlySet<SandboxState> = new Set(ESTABLISHED_STATES);

export function isLiving(state: SandboxState): boolean {
  return LIVING.has(state);
}

export function isEstablished(state: SandboxState): boolean {
  return ESTABLISHED.has(state);
}

/** Whether a state is past establishment, with success or without. */
export function isSettledState(state: SandboxState): boolean {
  return state !== 'requested' && state !== 'provisioning';
}
