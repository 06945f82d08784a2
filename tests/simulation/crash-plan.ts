import type { Coverage } from './coverage.ts';
import { BACKEND_FAULTS, NETWORK_FAULTS } from './fault-plan.ts';
import type { Prng } from './prng.ts';
import type { Suspension } from './scheduler.ts';

const TRANSACTIONS = [
  'create',
  'restore',
  'fork',
  'claim',
  'renew',
  'settle-provision',
  'settle-probe',
  'settle-teardown',
  'settle-hedge',
  'settle-pause',
  'settle-resume',
  'settle-snapshot',
  'settle-extend',
  'destroy',
  'extend',
  'pause',
  'resume',
  'snapshot',
  'recreate',
  'touch',
  'expire',
  'lost',
  'orphan-removed',
  'tick',
  'fund',
  'funded',
  'delivered',
  'redelivered',
  'snapshot-deleted',
  'delete-snapshot',
  'grant',
  'prune',
  'recover',
] as const;
const BACKEND = [
  'create',
  'restore',
  'fork',
  'wait_running',
  'exec',
  'delete',
  'wait_gone',
  'list',
  'pause',
  'resume',
  'extend',
  'snapshot',
  'delete_snapshot',
  'get',
] as const;

/** Where a process can be made to die: around each transaction, before and after each effect elsewhere, while it sleeps. */
export const CRASH_POINTS: readonly string[] = [
  ...TRANSACTIONS.flatMap((label) => [`tx:${label}:before`, `tx:${label}:after`]),
  ...BACKEND.flatMap((op) => [`backend:${op}:sent`, `backend:${op}:effected`]),
  'deliver:sent',
  'deliver:taken',
  'sleep',
];
const KNOWN: ReadonlySet<string> = new Set(CRASH_POINTS);

export const FAULTS: readonly string[] = [...BACKEND_FAULTS, ...NETWORK_FAULTS];

type Aim = {
  /** Armed once this many operations have begun. */
  readonly fromOperation: number;
  /** As SIGTERM instead of a power cut. */
  readonly graceful: boolean;
  skip: number;
  patience: number;
} & (
  | { readonly kind: 'point'; readonly point: string }
  /** At one of the next suspensions of a sandbox that has just met this fault. */
  | { readonly kind: 'fault'; readonly fault: string }
);

export type CrashKind = 'kill' | 'stop';

/** When processes die. Fixed by the seed: aims are taken up one after the other as the operations go on. */
export class CrashPlan {
  readonly #aims: Aim[];

  constructor(prng: Prng, count: number, operations: number) {
    this.#aims = Array.from({ length: count }, (_, index): Aim => {
      const common = {
        fromOperation: Math.floor(((index + prng.float()) * operations) / count),
        graceful: prng.chance(0.06),
        skip: prng.between(0, 3),
        patience: 260,
      };
      if (prng.chance(0.45)) return { ...common, kind: 'point', point: prng.pick(CRASH_POINTS) };
      return { ...common, kind: 'fault', fault: prng.pick(FAULTS) };
    });
  }

  /** Asked at each suspension that somebody could die at: whether this may be the place. */
  isTempted(what: Suspension, operation: number, coverage: Coverage): boolean {
    const aim = this.#aims[0];
    if (aim === undefined || operation < aim.fromOperation || !KNOWN.has(what.label)) return false;
    aim.patience -= 1;
    if (aim.patience <= 0) return true;
    if (aim.kind === 'point') return aim.point === what.label;
    return what.concerns !== undefined && coverage.isAbout(aim.fault);
  }

  /** Asked where it is tempted. */
  async decide(what: Suspension, coverage: Coverage): Promise<CrashKind | null> {
    const aim = this.#aims[0] as Aim;
    if (aim.patience > 0) {
      if (aim.kind === 'fault' && !(await concernsFault(what, aim.fault, coverage))) return null;
      aim.skip -= 1;
      if (aim.skip >= 0) return null;
    }
    this.#aims.shift();
    return aim.graceful ? 'stop' : 'kill';
  }
}

async function concernsFault(what: Suspension, fault: string, coverage: Coverage): Promise<boolean> {
  for (const uid of (await what.concerns?.()) ?? []) if (coverage.faultOf(uid) === fault) return true;
  return false;
}
