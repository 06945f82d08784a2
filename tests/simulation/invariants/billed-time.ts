import type { MeterRecord } from '../../../src/core/credits/meter.ts';
import type { EventRecord } from '../../../src/core/events/event.ts';
import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

/** One generation of one sandbox as its events tell it: the states it was in, and from when on. */
interface Life {
  readonly states: { readonly state: string | null; readonly at: number }[];
  /** The earliest deadline it had before `ready`: no backend was told to end it before that one. */
  earliestDeadlineAt: number;
  /** The latest end of what is owed in each stretch that ran, by the end of the stretch. */
  readonly owedUntil: Map<number, number>;
}

const nameOf = (uid: string, generation: number) => `${uid} g${generation}`;

/** Time that is billed is time in billable states by the events, but for what the rules give: neither more nor less. */
export class BilledTimeInvariants {
  readonly #ctx: AuditContext;
  readonly #lives = new Map<string, Life>();
  readonly #opened = new Set<string>();

  constructor(ctx: AuditContext) {
    this.#ctx = ctx;
  }

  onCommit(commit: AppliedCommit): void {
    for (const write of commit.writes) {
      if (write.table === 'sandbox') this.#noteDeadline(write.row);
      if (write.table === 'event') this.#noteState(write.row);
    }
    for (const [uid, row] of commit.after) this.#noteOwed(commit.before.get(uid), row);
    for (const write of commit.writes) {
      if (write.table !== 'meter') continue;
      if (!this.#opened.has(write.row.id)) this.#checkOpening(write.row);
      this.#opened.add(write.row.id);
      if (write.row.closedAt !== null) this.#checkBilled(write.row, commit.label);
    }
  }

  #life(uid: string, generation: number): Life {
    const name = nameOf(uid, generation);
    const life = this.#lives.get(name) ?? {
      states: [],
      earliestDeadlineAt: Number.POSITIVE_INFINITY,
      owedUntil: new Map(),
    };
    this.#lives.set(name, life);
    return life;
  }

  #noteDeadline({ uid, generation, state, deadlineAt }: SandboxRecord): void {
    if (state !== 'requested' && state !== 'provisioning') return;
    const life = this.#life(uid, generation);
    life.earliestDeadlineAt = Math.min(life.earliestDeadlineAt, deadlineAt);
  }

  #noteState({ type, sandboxUid, generation, state, at }: EventRecord): void {
    if (!type.startsWith('sandbox.') || sandboxUid === null || generation === null) return;
    const { states } = this.#life(sandboxUid, generation);
    if (states.at(-1)?.state !== state) states.push({ state, at });
  }

  /** Nobody owes for time after the deadline, nor for time that the backend did not confirm. */
  #noteOwed(before: SandboxRecord | undefined, row: SandboxRecord): void {
    if (before === undefined || before.state === row.state || before.meterId === null) return;
    const funded = this.#ctx.mirror.meters.get(before.meterId)?.fundedUntil ?? before.deadlineAt;
    const owedUntil = Math.min(row.stateSince, before.deadlineAt, funded);
    this.#life(before.uid, before.generation).owedUntil.set(row.stateSince, owedUntil);
  }

  /** What is paid for ahead reaches at least to what the backend was told last when it was made. */
  #checkOpening(meter: MeterRecord): void {
    if (meter.fundedUntil === null) return;
    const { fundMs, deadManGraceMs } = this.#ctx.scenario.settings;
    const startedAt = this.#ctx.mirror.attempts.get(meter.id.slice('meter-'.length))?.startedAt ?? 0;
    const { earliestDeadlineAt } = this.#life(meter.sandboxUid, meter.generation);
    const told = Math.min(earliestDeadlineAt, startedAt + fundMs) + deadManGraceMs;
    if (meter.fundedUntil < told)
      this.#ctx.fail(
        'opened-as-told',
        `${meter.id} is funded until ${meter.fundedUntil}, its backend was told ${told}`,
      );
  }

  #checkBilled(meter: MeterRecord, label: string): void {
    const { sandboxUid, generation, runningRate, pausedRate, billedMs } = meter;
    if (runningRate === 0n) return;
    const life = this.#life(sandboxUid, generation);
    const isBilled = (state: string | null) =>
      state === 'ready' || state === 'active' || (state === 'paused' && pausedRate > 0n);
    let ran = 0;
    let owed = 0;
    let since: number | null = null;
    for (const { state, at } of life.states) {
      if (since === null && isBilled(state)) since = at;
      if (since === null || isBilled(state)) continue;
      ran += at - since;
      owed += Math.max(0, (life.owedUntil.get(at) ?? at) - since);
      since = null;
    }
    const what = `${meter.id} billed ${billedMs} ms`;
    if (billedMs > ran)
      this.#ctx.fail('billed-by-events', `${what}, it ran for ${ran} by its events (${label})`);
    if (billedMs < owed) this.#ctx.fail('no-free-time', `${what}, ${owed} are owed by its events (${label})`);
    this.#lives.delete(nameOf(sandboxUid, generation));
  }
}
