import type { Prng } from './prng.ts';
import type { Suspension } from './scheduler.ts';

/** The labels of transactions that touch sandboxes, by how often they come up anyway: rare ones are aimed at. */
const TRANSACTIONS = [
  'create', 'restore', 'fork', 'claim', 'renew', 'settle-provision', 'settle-probe', 'settle-teardown', 'settle-pause',
  'settle-resume', 'settle-snapshot', 'settle-extend', 'destroy', 'extend', 'pause', 'resume', 'snapshot', 'recreate',
  'touch', 'expire', 'lost', 'orphan-removed', 'tick', 'delivered', 'redelivered', 'snapshot-deleted',
  'delete-snapshot', 'grant', 'prune', 'recover',
] as const;
const BACKEND = [
  'create', 'restore', 'fork', 'wait_running', 'exec', 'delete', 'wait_gone', 'list', 'pause', 'resume', 'extend',
  'snapshot', 'delete_snapshot', 'get',
] as const;

export const CRASH_POINTS: readonly string[] = [
  ...TRANSACTIONS.flatMap((label) => [`tx:${label}:before`, `tx:${label}:after`]),
  ...BACKEND.flatMap((op) => [`backend:${op}:sent`, `backend:${op}:effected`]),
  'deliver:sent',
  'deliver:taken',
  'sleep',
];

interface Aim {
  /** Armed once this many operations have begun. */
  readonly fromOperation: number;
  /** `null`: anywhere. */
  readonly point: string | null;
  /** Wait for a sandbox that has just met a fault. */
  readonly afterFault: boolean;
  /** As SIGTERM instead of a power cut. */
  readonly graceful: boolean;
  skip: number;
  patience: number;
}

export type CrashKind = 'kill' | 'stop';

/** When processes die. Fixed by the seed: aims are taken up one after the other as the operations go on. */
export class CrashPlan {
  readonly #aims: Aim[];

  constructor(prng: Prng, count: number, operations: number) {
    this.#aims = Array.from({ length: count }, (_, index): Aim => {
      const aimed = prng.chance(0.75);
      return {
        fromOperation: Math.floor(((index + prng.float()) * operations) / count),
        point: aimed ? prng.pick(CRASH_POINTS) : null,
        afterFault: prng.chance(0.6),
        graceful: prng.chance(0.08),
        skip: aimed ? prng.between(0, 2) : prng.between(0, 60),
        patience: 450,
      };
    });
  }

  /** Asked at each suspension that somebody could die at. */
  async wants(what: Suspension, operation: number, hadFault: (uid: string) => boolean): Promise<CrashKind | null> {
    const aim = this.#aims[0];
    if (aim === undefined || operation < aim.fromOperation) return null;
    aim.patience -= 1;
    if (aim.patience > 0) {
      if (aim.point !== null && aim.point !== what.label) return null;
      if (aim.skip > 0) {
        aim.skip -= 1;
        return null;
      }
      if (aim.afterFault && aim.patience > 200 && what.concerns !== undefined && aim.point !== null) {
        const concerned = [...(await what.concerns())];
        if (!concerned.some(hadFault)) return null;
      }
    }
    this.#aims.shift();
    return aim.graceful ? 'stop' : 'kill';
  }
}
