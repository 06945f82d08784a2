import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type { RequestInfo } from '../sim-store.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

/** Told after the request was accepted: what it wrote stays. */
const AFTER_ACCEPTANCE: ReadonlySet<string> = new Set(['SBX_CANCELLED']);

/** What clients are promised about refusals, repetitions and limits. */
export class RequestInvariants {
  readonly #ctx: AuditContext;
  readonly #writes = new Map<number, number>();

  constructor(ctx: AuditContext) {
    this.#ctx = ctx;
  }

  /** Before the commit is in the mirror: whether a repetition would change something. */
  beforeCommit(request: RequestInfo | null, writes: number, label: string): void {
    if (request === null) return;
    this.#writes.set(request.id, (this.#writes.get(request.id) ?? 0) + writes);
    if (request.idempotencyKey === undefined || writes === 0 || label !== request.kind) return;
    if (this.#ctx.mirror.idempotency.has(`${request.workspaceId}\n${request.idempotencyKey}`)) {
      this.#ctx.fail('replay-changes-nothing', `a repeated ${request.kind} wrote ${writes} rows`);
    }
  }

  onCommit(commit: AppliedCommit): void {
    const { maxLiving } = this.#ctx.scenario.settings;
    if (maxLiving === null) return;
    for (const row of commit.after.values()) {
      const living = this.#ctx.mirror.living.get(row.workspaceId) ?? 0;
      if (living > maxLiving) {
        this.#ctx.fail(
          'living-within-limit',
          `${row.workspaceId} has ${living} of ${maxLiving} (${commit.label} ${row.uid})`,
        );
      }
    }
  }

  /** A transaction was refused: for a reason that is true. */
  refused(error: unknown, request: RequestInfo | null): void {
    if (!(error instanceof SandboxerError) || request === null) return;
    const { mirror, scenario } = this.#ctx;
    if (error.code === 'SBX_QUOTA_EXCEEDED') {
      const living = mirror.living.get(request.workspaceId) ?? 0;
      const awaited = [...mirror.unfinished.values()].filter(
        (row) => row.recreating && row.workspaceId === request.workspaceId,
      );
      if (living + awaited.length < (scenario.settings.maxLiving ?? 0)) {
        this.#ctx.fail('quota-when-full', `refused with ${living} of ${scenario.settings.maxLiving}`);
      }
    }
    if (error.code === 'SBX_INSUFFICIENT_CREDITS') {
      const available = mirror.balances.get(`liab:credits:${request.workspaceId}`) ?? 0;
      const stated = error.extras.members as { available_micro_usd: number; shortfall_micro_usd: number };
      // A recreate counts on what its old generation gives back.
      const counted =
        request.kind === 'recreate'
          ? stated.available_micro_usd >= available
          : stated.available_micro_usd === available;
      if (!counted || stated.shortfall_micro_usd <= 0) {
        this.#ctx.fail('refused-when-poor', `${JSON.stringify(stated)}, the balance is ${available}`);
      }
    }
  }

  ended(request: RequestInfo, error: unknown): void {
    const writes = this.#writes.get(request.id) ?? 0;
    this.#writes.delete(request.id);
    if (error === null) return;
    if (!(error instanceof SandboxerError)) {
      this.#ctx.fail('errors-are-ours', `${request.kind} threw ${describe(error)}`);
      return;
    }
    if (error.code === 'SBX_INTERNAL') this.#ctx.fail('errors-are-ours', `${request.kind}: ${error.detail}`);
    const told = error.extras.backend !== undefined || error.extras.members?.uid !== undefined;
    const refusal = error.status < 500 && !told && !AFTER_ACCEPTANCE.has(error.code);
    if (refusal && writes > 0) {
      this.#ctx.fail(
        'refusal-changes-nothing',
        `${request.kind} answered ${error.code} and wrote ${writes} rows`,
      );
    }
  }
}

export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ''}` : String(error);
}
