import type { EventRecord } from '../../src/core/events/event.ts';
import type { SandboxRecord } from '../../src/core/lifecycle/sandbox.ts';
import type { StubReply, StubRequest } from '../../src/extensions/saas-stub/wire/protocol.ts';
import type { Coverage } from './coverage.ts';
import type { AuditContext, Commit } from './invariants/audit-context.ts';
import { BackendInvariants, uidOf } from './invariants/backend.ts';
import { BilledTimeInvariants } from './invariants/billed-time.ts';
import { BudgetInvariants } from './invariants/budgets.ts';
import { checkCheckpoints } from './invariants/checkpoints.ts';
import { EventInvariants } from './invariants/events.ts';
import { checkLifecycle } from './invariants/lifecycle.ts';
import { MoneyInvariants } from './invariants/money.ts';
import { checkRecords } from './invariants/records.ts';
import { describe, RequestInvariants } from './invariants/requests.ts';
import { checkTiming } from './invariants/timing.ts';
import type { BackendWitness } from './sim-network.ts';
import type { SinkPlan } from './sim-sink.ts';
import type { RequestInfo } from './sim-store.ts';

const LOOK_EVERY_MS = 500;
const MOST_IDLE_RUNS = 60;

/** Sees every commit, every effect at a backend and every delivery, and compares them with what was promised. */
export class Auditor implements BackendWitness {
  readonly #ctx: AuditContext;
  readonly #coverage: Coverage;
  readonly backend: BackendInvariants;
  readonly #money: MoneyInvariants;
  readonly #billedTime: BilledTimeInvariants;
  readonly #budgets: BudgetInvariants;
  readonly events: EventInvariants;
  readonly #requests: RequestInvariants;
  #lookedAt = 0;
  #second = 0;
  readonly #idleRuns = new Map<string, number>();
  trace: ((line: string) => void) | null = null;

  constructor(ctx: AuditContext, coverage: Coverage, sinks: readonly SinkPlan[]) {
    this.#ctx = ctx;
    this.#coverage = coverage;
    this.backend = new BackendInvariants(ctx);
    this.#money = new MoneyInvariants(ctx);
    this.#billedTime = new BilledTimeInvariants(ctx);
    this.#budgets = new BudgetInvariants(ctx);
    this.events = new EventInvariants(ctx, sinks);
    this.#requests = new RequestInvariants(ctx);
  }

  committed(commit: Commit): void {
    const { mirror } = this.#ctx;
    const { writes } = commit;
    this.#requests.beforeCommit(commit.request, writes.length, commit.label);
    if (writes.length === 0 || commit.label === 'tick') this.#watchForSpin(commit.label);
    if (writes.length === 0) return;
    const before = new Map<string, SandboxRecord | undefined>();
    for (const write of writes) {
      if (write.table === 'sandbox' && !before.has(write.row.uid))
        before.set(write.row.uid, mirror.sandboxes.get(write.row.uid));
    }
    mirror.apply(writes);
    const after = new Map<string, SandboxRecord>();
    for (const [uid, was] of before) {
      const row = mirror.sandboxes.get(uid);
      if (row === undefined) continue;
      after.set(uid, row);
      this.trace?.(`    ${uid} ${was?.state ?? 'new'} → ${row.state} g${row.generation} v${row.version}`);
      if (was?.state !== row.state) this.#coverage.moved(uid);
    }
    const applied = { ...commit, before, after };
    checkLifecycle(this.#ctx, applied);
    checkCheckpoints(this.#ctx, applied);
    checkRecords(this.#ctx, applied);
    this.#money.onCommit(applied);
    this.#billedTime.onCommit(applied);
    this.#budgets.onCommit(applied);
    this.events.onCommit(applied);
    this.backend.onCommit(applied);
    this.#requests.onCommit(applied);
  }

  /** A worker that runs again and again and gets nowhere. */
  #watchForSpin(label: string): void {
    const second = Math.floor(this.#ctx.scheduler.now / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#idleRuns.clear();
    }
    const runs = (this.#idleRuns.get(label) ?? 0) + 1;
    this.#idleRuns.set(label, runs);
    if (runs > MOST_IDLE_RUNS)
      this.#ctx.fail('no-busy-loop', `"${label}" ran ${runs} times within a second for nothing`);
  }

  refused(_label: string, error: unknown, request: RequestInfo | null): void {
    this.#requests.refused(error, request);
  }

  requestEnded(request: RequestInfo, error: unknown): void {
    this.trace?.(
      `    ${request.kind} #${request.id} ended: ${error === null ? 'ok' : describe(error).split('\n')[0]}`,
    );
    this.#requests.ended(request, error);
  }

  delivered(sinkId: string, event: EventRecord): void {
    this.events.delivered(sinkId, event);
  }

  defect(message: string, error: unknown): void {
    this.#ctx.fail('no-defect', `${message}: ${describe(error)}`);
  }

  born(extensionId: string, name: string): void {
    this.trace?.(`    ${extensionId} made ${name}`);
    this.backend.born(extensionId, name);
  }

  sent(request: StubRequest): void {
    this.backend.sent(request);
  }

  answered(_extensionId: string, request: StubRequest, reply: StubReply): void {
    this.trace?.(`    ${request.op} answered ${reply.status} ${JSON.stringify(reply.body)}`);
    this.backend.answered(request, reply);
  }

  fault(request: StubRequest, fault: string): void {
    this.trace?.(`    fault ${fault} on ${request.op} ${'name' in request ? request.name : ''}`);
    this.backend.fault(request);
    this.#coverage.faulted(this.sandboxOf(request), fault);
  }

  sandboxOf(request: StubRequest): string | null {
    if ('name' in request) return uidOf(request.name);
    if ('snapshot_id' in request)
      return this.#ctx.mirror.snapshots.get(request.snapshot_id)?.sandboxUid ?? null;
    return null;
  }

  /** After every step. */
  look(): void {
    const { now } = this.#ctx.scheduler;
    if (now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    checkTiming(this.#ctx, now);
    this.backend.onTime(now);
    this.#money.onTime();
  }

  async atRest(balanceOf: (account: string) => Promise<number>): Promise<void> {
    const missed = this.events.undelivered();
    if (missed !== null) this.#ctx.fail('events-delivered', missed);
    this.backend.atRest();
    await this.#money.atRest(balanceOf);
  }
}
