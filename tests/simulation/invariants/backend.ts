import { nextFundAt } from '../../../src/core/credits/ledger/funding.ts';
import type { SandboxRecord } from '../../../src/core/lifecycle/sandbox.ts';
import type { StubReply, StubRequest } from '../../../src/extensions/saas-stub/wire/protocol.ts';
import type { AppliedCommit, AuditContext } from './audit-context.ts';

const MAKES: ReadonlySet<string> = new Set(['create', 'restore', 'fork']);

/** The truth at the backends against what the rows say of it. */
export class BackendInvariants {
  readonly #ctx: AuditContext;
  /** Which backend made each object. */
  readonly #madeBy = new Map<string, string>();
  /** Step at which we last asked for it to be made. */
  readonly #asked = new Map<string, number>();
  /** Step at which the backend last stated that there is nothing under this name. */
  readonly #absent = new Map<string, number>();
  /** Where a command was shown to work. */
  readonly #reached = new Set<string>();
  readonly #forgotten = new Set<string>();
  readonly #orphanSince = new Map<string, number>();
  /** Sandboxes that anything ever went wrong with at a backend. */
  readonly #everFaulted = new Set<string>();
  /** When listing, or removing this object, last went wrong. */
  readonly #troubleAt = new Map<string, number>();

  constructor(ctx: AuditContext) {
    this.#ctx = ctx;
  }

  born(extensionId: string, name: string): void {
    const { mirror } = this.#ctx;
    this.#madeBy.set(name, extensionId);
    const attempt = mirror.attempts.get(name);
    const uid = uidOf(name);
    if (attempt === undefined && !this.#forgotten.has(uid)) {
      this.#ctx.fail('journal-first', `${extensionId} made ${name}, which nobody journalled`);
    } else if (attempt !== undefined && attempt.extensionId !== extensionId) {
      this.#ctx.fail(
        'journal-first',
        `${name} was journalled for ${attempt.extensionId}, made by ${extensionId}`,
      );
    }
  }

  sent(request: StubRequest): void {
    if (MAKES.has(request.op) && 'name' in request) this.#asked.set(request.name, this.#ctx.scheduler.steps);
  }

  answered(request: StubRequest, reply: StubReply): void {
    if (!('name' in request)) return;
    const { steps } = this.#ctx.scheduler;
    const body = reply.body as { gone?: boolean; error?: { created?: boolean; code: string } };
    const { op, name } = request;
    if (op === 'exec' && reply.status < 300) this.#reached.add(name);
    if ((op === 'delete' || op === 'wait_gone') && body.gone === true) this.#absent.set(name, steps);
    if (!MAKES.has(op) || body.error === undefined) return;
    const refused = reply.status < 500 || body.error.code === 'capacity';
    if (body.error.created === false || (body.error.created === undefined && refused))
      this.#absent.set(name, steps);
  }

  fault(request: StubRequest): void {
    const { now } = this.#ctx.scheduler;
    if ('name' in request) this.#everFaulted.add(uidOf(request.name));
    if (request.op === 'list') this.#troubleAt.set('list', now);
    else if ('name' in request) this.#troubleAt.set(request.name, now);
  }

  onCommit(commit: AppliedCommit): void {
    for (const write of commit.writes) {
      if (write.table === 'forgotten') for (const uid of write.sandboxes) this.#forgotten.add(uid);
      if (write.table === 'attempt')
        this.#checkAttempt(write.row.attemptId, write.row.sandboxUid, commit.label);
    }
    for (const [uid, row] of commit.after) {
      const was = commit.before.get(uid)?.state;
      if (row.state === 'ready' && was === 'provisioning')
        this.#checkReached(uid, row.generation, row.attempt);
      if (row.state === 'destroyed' && was !== 'destroyed') this.#checkAllGone(uid);
    }
  }

  /** An object that should not be there must be found by a sweep or two. */
  onTime(now: number): void {
    const { mirror, scenario, worlds } = this.#ctx;
    const steady = this.#ctx.steadySince();
    if (steady === null) return;
    const boundMs = 3 * scenario.settings.reconcileMs + 25_000;
    for (const world of worlds.values()) {
      for (const { name, state, hidden } of world.objects()) {
        const attempt = mirror.attempts.get(name);
        const orphan = state !== 'deleting' && !hidden && (attempt === undefined || attempt.state === 'gone');
        if (!orphan) {
          this.#orphanSince.delete(name);
          continue;
        }
        const since = this.#orphanSince.get(name) ?? now;
        this.#orphanSince.set(name, since);
        const from = Math.max(
          since,
          steady,
          this.#troubleAt.get('list') ?? 0,
          this.#troubleAt.get(name) ?? 0,
        );
        if (now - from > boundMs)
          this.#ctx.fail('orphan-swept', `${name} is an orphan for ${now - since} ms`);
      }
    }
  }

  /** When everything has come to rest, the backends have what the rows say and nothing else. */
  atRest(): void {
    const { mirror, worlds } = this.#ctx;
    for (const [extensionId, world] of worlds) {
      for (const { name, state, endsAt } of world.objects()) {
        const attempt = mirror.attempts.get(name);
        const row = mirror.sandboxes.get(uidOf(name));
        const wanted =
          attempt?.state === 'won' && row?.attempt === attempt.n && row.generation === attempt.generation;
        if (!wanted)
          this.#ctx.fail('nothing-left', `${extensionId} still has ${name} (${state}), row ${row?.state}`);
        else if (!this.#everFaulted.has(row.uid)) this.#checkAgreement(row, state, endsAt);
      }
      for (const { id } of world.snapshots()) {
        const snapshot = mirror.snapshots.get(id);
        const state = snapshot?.state;
        // A request that was on its way when it was given up may come after its own deletion: nothing lists those.
        const disturbed = snapshot !== undefined && this.#everFaulted.has(snapshot.sandboxUid);
        if (state !== 'available' && !disturbed)
          this.#ctx.fail('no-snapshot-left', `${extensionId} still has ${id}, which is ${state}`);
      }
      for (const { name } of world.volumes())
        this.#ctx.fail('nothing-left', `${extensionId} still has a volume of ${name}`);
    }
  }

  /** Where nothing ever went wrong, the backend has it as the row says. */
  #checkAgreement(row: SandboxRecord, state: string, endsAt: number): void {
    const expected = row.state === 'paused' ? 'paused' : 'running';
    if (state !== expected)
      this.#ctx.fail('backend-agrees', `${row.uid} is ${row.state}, the backend has it ${state}`);
    const { mirror, scheduler, scenario } = this.#ctx;
    const meter = mirror.meters.get(row.meterId as string);
    if (meter?.fundAt != null && meter.fundAt <= scheduler.now) return;
    // Its end is being moved: until the backend confirms that, the next look is due at another time.
    const { fundMs, deadManGraceMs } = scenario.settings;
    const rule = { fundMs, graceMs: deadManGraceMs };
    if (meter?.fundedUntil != null && meter.fundAt !== nextFundAt(rule, meter.fundedUntil, row.deadlineAt))
      return;
    const earliest = meter?.fundedUntil ?? 0;
    if (endsAt < earliest || endsAt > row.deadlineAt + scenario.settings.deadManGraceMs) {
      this.#ctx.fail(
        'backend-bounds-life',
        `${row.uid} ends ${endsAt - row.deadlineAt} ms after its deadline at the backend`,
      );
    }
  }

  isPresent(name: string): boolean {
    const world = this.#ctx.worlds.get(this.#madeBy.get(name) ?? '');
    if (!world) return false;
    const object = world.objects().find((candidate) => candidate.name === name);
    return (object !== undefined && !object.hidden) || world.volumes().some((volume) => volume.name === name);
  }

  #checkAttempt(name: string, uid: string, label: string): void {
    const { mirror } = this.#ctx;
    const attempt = mirror.attempts.get(name);
    const open = mirror.attemptRows(uid).filter(({ state }) => state !== 'gone');
    const which = open.map(({ attemptId, state }) => `${attemptId} ${state}`).join(', ');
    const firsts = open.filter(({ hedges }) => hedges === null);
    if (firsts.length > 1 || open.length > 2) this.#ctx.fail('one-attempt-at-a-time', `${which} (${label})`);
    const row = mirror.sandboxes.get(uid);
    const won = open.filter(({ state }) => state === 'won');
    if (won.length > 1) this.#ctx.fail('one-winner', `${which} (${label})`);
    const loses = open.some(({ state }) => state === 'journalled' || state === 'provisioned');
    if (loses && (row?.state === 'ready' || row?.state === 'active' || row?.state === 'paused'))
      this.#ctx.fail('losers-condemned', `${uid} is ${row.state} with ${which} (${label})`);
    if (attempt?.state === 'gone') this.#checkGone(name, label);
  }

  #checkGone(name: string, label: string): void {
    if (!this.isPresent(name)) return;
    // What comes into being after the backend said that there is nothing is the sweep's, not a mistake of ours.
    const stated = this.#absent.get(name) ?? -1;
    if (stated < (this.#asked.get(name) as number))
      this.#ctx.fail('gone-is-proven', `${name} is settled as gone and lives on (${label})`);
  }

  #checkAllGone(uid: string): void {
    for (const { attemptId, state } of this.#ctx.mirror.attemptRows(uid)) {
      if (state !== 'gone')
        this.#ctx.fail('gone-is-proven', `${uid} is destroyed and ${attemptId} is ${state}`);
    }
  }

  #checkReached(uid: string, generation: number, attempt: number | null): void {
    const name = `${uid}-g${generation}-a${attempt}`;
    if (!this.#reached.has(name)) {
      this.#ctx.fail('ready-is-reachable', `${name} became ready and was never reached`);
    }
  }
}

export function uidOf(name: string): string {
  return name.slice(0, name.lastIndexOf('-g'));
}
