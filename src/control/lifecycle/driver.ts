import { SandboxerError } from '../../contract/errors/errors.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import { isEstablished, isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { BackendStep } from './advance.ts';
import { advanceSandbox } from './advance.ts';
import { attemptStarted, attemptsJudged } from './attempt-health.ts';
import type { EditScope, SettleScope } from './edit/attempt-edit.ts';
import { Interrupted, LeaseLost, Outrun } from './edit/interruption.ts';
import { SandboxEdit, saveEdit } from './edit/sandbox-edit.ts';
import { guardedCall } from './guarded-call.ts';
import type { Claim, Lane, Work } from './lanes.ts';
import { goalOf, hasOnlyLeftovers, laneOf, workOn } from './lanes.ts';
import { hedgeStep } from './steps/hedge.ts';
import { operateStep } from './steps/operate.ts';
import { probeStep } from './steps/probe.ts';
import { provisionStep } from './steps/provision.ts';
import type { Step, Verdict } from './steps/step.ts';
import { GO_ON } from './steps/step.ts';
import { teardownStep } from './steps/teardown.ts';
import { firstWithin } from './wait-for-sandbox.ts';

const ANSWERED = () => true;

/** The end of a step's call. */
type Ended<Outcome> =
  | { readonly kind: 'answered'; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Writes the end of a step in the transaction that also decides the next ones. */
type Settlement = (scope: SettleScope) => Promise<Verdict>;

function settlementOf<Outcome>(step: Step<Outcome>, ended: Ended<Outcome>): Settlement {
  return (scope) =>
    ended.kind === 'answered' ? step.settle(scope, ended.outcome) : step.fail(scope, ended.error);
}

/** The state that a claim takes over from the one before it: the lease, the documents that were read, the lanes that wait. */
type Proceeding = Pick<Work, 'token'> & {
  readonly known: SandboxDocuments | null;
  readonly deferred: ReadonlyMap<string, number>;
};

function newWork(token: string): Proceeding {
  return { token, known: null, deferred: new Map() };
}

export interface TakenUp {
  readonly sandbox: SandboxRecord;
  /** `null` when another claim holds the sandbox. */
  readonly claim: Claim | null;
}

export interface DriverListener {
  /** Called when this process has made the sandbox usable. */
  usable?(claim: Claim): void;
  /** Called when this process has ended the sandbox. */
  over?(uid: string): void;
}

/**
 * Brings sandboxes to where their rows say they should be: claim, call the backend, write the outcome together with the
 * next steps, go on. Steps about different attempts are taken at the same time, each in its lane. It is the only part
 * that calls a backend to create, change or remove a sandbox.
 */
export class Driver {
  readonly #deps: ControlPorts;
  readonly #running = new Map<string, Work>();
  readonly #listener: DriverListener;
  #stopping = false;

  constructor(deps: ControlPorts, listener: DriverListener = {}) {
    this.#deps = deps;
    this.#listener = listener;
  }

  get inFlight(): number {
    return this.#running.size;
  }

  isDriving(uid: string): boolean {
    return this.#running.has(uid);
  }

  /**
   * Claims the sandbox if it needs work and no other claim holds it, and works until none is left. Returns the row as this left
   * it, or `null` when there was nothing to claim. Never rejects.
   */
  async drive(uid: string): Promise<SandboxRecord | null> {
    if (this.#stopping) return null;
    const work = this.#running.get(uid);
    try {
      if (work) return await this.#lookAgain(work);
      const claim = await this.#claim(uid);
      return claim ? await this.resume(claim) : null;
    } catch (error) {
      this.#deps.log.error({ err: error, sandbox: uid }, 'a sandbox could not be claimed; it stays due');
      return null;
    }
  }

  /**
   * Goes on with a claim that was made in another use-case's transaction. Returns the last row it wrote, as soon as the sandbox
   * is usable or there is nothing to do. Never rejects.
   */
  resume(first: Claim): Promise<SandboxRecord> {
    const work = workOn(first);
    this.#running.set(first.sandbox.uid, work);
    this.#goOn(work);
    return work.answer.promise;
  }

  /** Ends the backend calls in flight, so that a changed request is acted on at once. A teardown goes on. */
  interrupt(uid: string): void {
    for (const { step, controller } of this.#running.get(uid)?.lanes.values() ?? []) {
      if (step.kind !== 'teardown') controller.abort(new Interrupted('The sandbox is wanted otherwise now.'));
    }
  }

  /** Takes no new work. Calls in flight are interrupted, and continue after the next start. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const { lanes } of this.#running.values())
      for (const { controller } of lanes.values()) controller.abort(new LeaseLost('The server is stopping.'));
  }

  newLease(now: number): { owner: string; token: string; until: number } {
    const { ids, instance, settings } = this.#deps;
    return { owner: instance, token: ids.next('lease'), until: now + settings.leaseMs };
  }

  /**
   * Writes the edit in the caller's transaction and claims the sandbox at once, so that the hand-over costs no commit of its own.
   * If another claim holds the sandbox, only the edit is written: the holder will see it.
   */
  async takeUp(tx: Tx, edit: SandboxEdit): Promise<TakenUp> {
    const { lease } = edit.row;
    if (this.#stopping || (lease && lease.until > edit.now)) {
      return { sandbox: await saveEdit(tx, this.#deps, edit), claim: null };
    }
    const attempts = [...(await tx.attempts.forSandbox(edit.row.uid))];
    const { token } = this.newLease(edit.now);
    const claim = await this.#proceed({ tx, deps: this.#deps, edit, attempts }, newWork(token));
    return { sandbox: claim.sandbox, claim };
  }

  /** Works on the claim of `takeUp`; if another claim holds the sandbox, makes sure that the edit is not missed. */
  async follow({ sandbox, claim }: TakenUp): Promise<SandboxRecord | null> {
    return claim ? this.resume(claim) : this.drive(sandbox.uid);
  }

  async #claim(uid: string): Promise<Claim | null> {
    const deps = this.#deps;
    return deps.store.transaction('claim', async (tx) => {
      const now = deps.clock.now();
      const row = await tx.sandboxes.get(uid);
      if (!row || row.workDueAt === null || row.workDueAt > now) return null;
      if (row.lease && row.lease.until > now) return null;
      const lease = this.newLease(now);
      const edit = new SandboxEdit(row, deps, now);
      edit.patch({ lease });
      const attempts = [...(await tx.attempts.forSandbox(uid))];
      return this.#proceed({ tx, deps, edit, attempts }, newWork(lease.token));
    });
  }

  /** Takes the database steps, keeps or gives up the lease, and writes it all. */
  async #proceed(scope: EditScope, { token, known, deferred }: Proceeding): Promise<Claim> {
    const { tx, deps, edit } = scope;
    let documents = known;
    const documentsOf = async (generation: number) => {
      if (documents?.generation === generation) return documents;
      documents = await tx.sandboxes.documents(edit.row.uid, generation);
      if (documents) return documents;
      throw new SandboxerError('SBX_INTERNAL', `Generation ${generation} of ${edit.row.uid} has no recipe.`);
    };
    const needed = await advanceSandbox(scope, documentsOf);
    const dueAt = (step: BackendStep) => deferred.get(laneOf(step)) ?? edit.now;
    const steps = needed.filter((step) => dueAt(step) <= edit.now);
    if (steps.length === 0) {
      const workDueAt = needed.length > 0 ? Math.min(...needed.map(dueAt)) : null;
      edit.patch({ lease: null, workDueAt });
      return {
        sandbox: await saveEdit(tx, deps, edit),
        token,
        steps,
        documents: documents as SandboxDocuments,
      };
    }
    const own = await documentsOf(edit.row.generation);
    edit.patch({ lease: { owner: deps.instance, token, until: edit.now + deps.settings.leaseMs } });
    return { sandbox: await saveEdit(tx, deps, edit), token, steps, documents: own };
  }

  /** Starts the steps of the newest claim that are not under way; stops those that it no longer has. */
  #goOn(work: Work): void {
    const { latest, lanes } = work;
    const { uid } = latest.sandbox;
    for (const [name, { step, controller }] of lanes) {
      const wanted = latest.steps.some((next) => laneOf(next) === name && goalOf(next) === goalOf(step));
      if (!wanted) controller.abort(isEstablished(latest.sandbox.state) ? new Outrun() : new Interrupted());
    }
    if (isEstablished(latest.sandbox.state)) this.#listener.usable?.(latest);
    for (const step of latest.steps) if (!lanes.has(laneOf(step))) void this.#takeStep(work, step);
    if (lanes.size > 0) {
      if (hasOnlyLeftovers(latest)) work.answer.resolve(latest.sandbox);
      return;
    }
    // Another call may have claimed the sandbox anew between our last commit and now.
    if (this.#running.get(uid) === work) this.#running.delete(uid);
    if (!isLiving(latest.sandbox.state)) this.#listener.over?.(uid);
    work.answer.resolve(latest.sandbox);
  }

  /**
   * Takes a step. A lane keeps its name until its outcome is in `latest`: the next step is then never decided from an older row.
   */
  async #takeStep(work: Work, step: BackendStep): Promise<void> {
    const { uid } = work.latest.sandbox;
    const lane: Lane = { step, controller: new AbortController() };
    work.lanes.set(laneOf(step), lane);
    work.deferred.delete(laneOf(step));
    let next: Claim | null = null;
    try {
      next = await this.#perform(work, lane);
    } catch (error) {
      this.#deps.log.error(
        { err: error, sandbox: uid },
        'work on a sandbox was given up; its lease will run out',
      );
    }
    work.lanes.delete(laneOf(step));
    if (next) this.#goOn(this.#renewed(work, next));
    else if (work.lanes.size === 0) this.#goOn(this.#renewed(work, { ...work.latest, steps: [] }));
  }

  #renewed(work: Work, claim: Claim): Work {
    if (claim.sandbox.version >= work.latest.sandbox.version) work.latest = claim;
    return work;
  }

  /**
   * Looks at the row again for a request on a usable sandbox whose leftovers are being removed: the request need not wait for
   * that.
   */
  async #lookAgain(work: Work): Promise<null> {
    if (!hasOnlyLeftovers(work.latest) || work.lanes.size === 0) return null;
    const claim = await this.#settle(work, null, 'look', async () => GO_ON);
    if (claim && work.lanes.size > 0) this.#goOn(this.#renewed(work, claim));
    return null;
  }

  async #perform(work: Work, lane: Lane): Promise<Claim | null> {
    const { step } = lane;
    const deps = this.#deps;
    switch (step.kind) {
      case 'provision':
        return this.#provision(work, lane, step.attempt, step.isFirstCall);
      case 'probe':
        return this.#probe(work, lane, step.attempt, null);
      case 'teardown':
        return this.#take(work, lane, teardownStep(deps, step.attempt));
      case 'operate':
        return this.#take(work, lane, operateStep(deps, work.latest, step.operation));
      case 'hedge':
        return this.#take(work, lane, hedgeStep(deps, step.at));
    }
  }

  async #provision(
    work: Work,
    lane: Lane,
    attempt: AttemptRecord,
    isFirstCall: boolean,
  ): Promise<Claim | null> {
    const step = provisionStep(this.#deps, work.latest, attempt, isFirstCall);
    attemptStarted(this.#deps, attempt, work.latest.documents);
    const ended = await this.#call(work, lane, step);
    if (ended === null) return null;
    const settlement = settlementOf(step, ended);
    if (ended.kind === 'failed') return this.#settle(work, lane, step.label, settlement);
    return this.#probe(work, lane, { ...attempt, handle: ended.outcome.handle }, settlement);
  }

  /**
   * Probes a provisioned sandbox. `provisioned` is the outcome that was not written yet: a backend that is ready at once has both
   * in one commit. A backend that takes its time has its handle written meanwhile.
   */
  async #probe(
    work: Work,
    lane: Lane,
    attempt: AttemptRecord,
    provisioned: Settlement | null,
  ): Promise<Claim | null> {
    const { settings } = this.#deps;
    const step = probeStep(this.#deps, work.latest, attempt);
    const probing = this.#call(work, lane, step);
    let before = provisioned;
    if (before && !(await firstWithin(this.#deps, probing.then(ANSWERED), settings.handleWithinMs))) {
      const claim = await this.#settle(work, lane, 'provision', before);
      if (claim) this.#goOn(this.#renewed(work, claim));
      else lane.controller.abort(new LeaseLost());
      before = null;
    }
    const ended = await probing;
    if (ended === null) return null;
    return this.#settle(work, lane, step.label, async (scope) => {
      await before?.(scope);
      return settlementOf(step, ended)(scope);
    });
  }

  async #take<Outcome>(work: Work, lane: Lane, step: Step<Outcome>): Promise<Claim | null> {
    const ended = await this.#call(work, lane, step);
    return ended && this.#settle(work, lane, step.label, settlementOf(step, ended));
  }

  /** Returns how the call ended; `null` when nothing of it may be written: the lease is lost, or a wait was interrupted. Never rejects. */
  async #call<Outcome>(work: Work, lane: Lane, step: Step<Outcome>): Promise<Ended<Outcome> | null> {
    if (this.#stopping) return null;
    const { timeoutMs } = step;
    const call = (signal: AbortSignal) => step.call(signal);
    try {
      const outcome =
        timeoutMs === null
          ? await call(lane.controller.signal)
          : await guardedCall(
              this.#deps,
              lane.controller,
              { timeoutMs, renewLease: () => this.#renewLease(work) },
              call,
            );
      return { kind: 'answered', outcome };
    } catch (error) {
      return error instanceof LeaseLost || timeoutMs === null ? null : { kind: 'failed', error };
    }
  }

  async #renewLease({ latest, token }: Work): Promise<boolean> {
    const deps = this.#deps;
    return deps.store.transaction('renew', async (tx) => {
      const row = await tx.sandboxes.get(latest.sandbox.uid);
      if (!row || row.lease?.token !== token) return false;
      await tx.sandboxes.update({
        ...row,
        lease: { ...row.lease, until: deps.clock.now() + deps.settings.leaseMs },
      });
      return true;
    });
  }

  /**
   * Writes the outcome of a step and the next steps in one commit. The outcome of a lost lease is not written: the sweep finds
   * what the call left.
   */
  async #settle(work: Work, lane: Lane | null, label: string, settlement: Settlement): Promise<Claim | null> {
    const deps = this.#deps;
    const { latest, token } = work;
    let judged: AttemptRecord[] = [];
    const claim = await deps.store.transaction(`settle-${label}`, async (tx) => {
      judged = [];
      const now = deps.clock.now();
      const row = await tx.sandboxes.get(latest.sandbox.uid);
      if (!row || row.lease?.token !== token) return null;
      const edit = new SandboxEdit(row, deps, now);
      const attempts = [...(await tx.attempts.forSandbox(row.uid))];
      const { retryAt } = await settlement({ tx, deps, edit, attempts, judged });
      if (lane && retryAt !== undefined) work.deferred.set(laneOf(lane.step), retryAt);
      const { deferred } = work;
      return this.#proceed({ tx, deps, edit, attempts }, { token, known: latest.documents, deferred });
    });
    attemptsJudged(deps, judged, latest.documents);
    return claim;
  }
}
