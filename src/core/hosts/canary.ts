import { IsolationLevel } from '../../contract/extensions/capability.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { Verdict } from './hysteresis.ts';
import { turned } from './hysteresis.ts';

/** A trial under way: written before the backend is called, removed when nothing of it is left. */
export interface CanaryRecord {
  readonly attemptId: string;
  readonly sandboxUid: string;
  readonly hostId: string;
  readonly extensionId: string;
  readonly startedAt: number;
}

/** The result of a trial: milliseconds to a ready sandbox, of a first program, and until nothing is left. */
export interface CanaryResult {
  readonly extensionId: string;
  readonly at: number;
  readonly ok: boolean;
  readonly readyMs: number | null;
  readonly execMs: number | null;
  readonly goneMs: number | null;
  readonly problem: string | null;
  /** The backend's notes on a sandbox that worked, such as its wall. */
  readonly notes?: readonly string[];
}

/** The verdict of the trials of a backend on a host, with the figures of the last one. */
export interface CanaryStanding extends Verdict {
  readonly detail: string;
  readonly checkedAt: number;
  readonly readyMs: number | null;
  readonly execMs: number | null;
  readonly goneMs: number | null;
}

/** A backend that was never tried counts as healthy. */
const UNTRIED: Verdict = { status: 'healthy', since: null, failures: 0, successes: 0 };

/** Standing after a canary, by `turned`: 3 failures in a row take the backend of a host out; the first one decides alone. */
export function judgeCanary(before: CanaryStanding | undefined, result: CanaryResult): CanaryStanding {
  const { at, ok, readyMs, execMs, goneMs, problem, notes = [] } = result;
  const verdict = turned(before ?? UNTRIED, ok, at);
  return {
    ...verdict,
    detail: problem ?? ['It works.', ...notes].join(' '),
    checkedAt: at,
    readyMs,
    execMs,
    goneMs,
  };
}

/** Returns the least recipe that a backend can establish: it asks for nothing that the vector does not have. */
export function canaryRecipe({ capabilities }: ExtensionHeader): Recipe {
  const isolation = IsolationLevel.options.find((level) => capabilities.isolation.includes(level)) ?? 'none';
  return {
    profileId: 'profile.sandbox-canary',
    profileVersion: '1.0.0',
    pinnedExtension: null,
    image: 'host',
    isolation,
    persistence: capabilities.persistence[0] ?? 'ephemeral',
    network: { default: capabilities.deny_all ? 'deny' : 'allow', egress: [] },
    workspace: { mode: 'remote-canonical', access: 'rw' },
    resources: { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null },
    variables: {},
    setupRun: [],
    instructions: '',
    instructionsRef: null,
    secretRefs: [],
    inputs: {},
    trees: [],
    mounts: [],
    elevated: false,
    scope: 'session',
    ttlSeconds: 600,
    maxTtlSeconds: 600,
    idleReapSeconds: null,
    requires: {},
    route: {},
    placement: { prefer: [], fallback: [] },
    reachability: { tunnel: null, identity: null },
  };
}
