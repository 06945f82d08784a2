import { SandboxerError } from '../../contract/errors.ts';
import type { AttemptRecord } from '../../core/attempt.ts';
import { isEstablished, isLiving } from '../../core/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/sandbox.ts';
import type { Tx } from '../../core/store.ts';
import type { ControlDeps } from '../deps.ts';
import type { BackendStep } from './advance-sandbox.ts';
import { advanceSandbox } from './advance-sandbox.ts';
import { attemptsJudged } from './observe-attempt.ts';
import { Interrupted, LeaseLost, Outrun, runStep } from './run-step.ts';
import { SandboxEdit, saveEdit } from './sandbox-edit.ts';
import type { Settlement } from './settle-step.ts';
import { inTurn } from './settle-step.ts';
import type { StepCall } from './step-calls.ts';
import { operationCall, probeCall, provisionCall, teardownCall } from './step-calls.ts';
import { firstWithin } from './wait-for-sandbox.ts';
import type { Claim, Lane, Work } from './work.ts';
import { goalOf, hasOnlyLeftovers, laneOf, workOn } from './work.ts';

const ANSWERED = () => true;

export interface TakenUp {
  readonly sandbox: SandboxRecord;
  /** `null` when somebody else has the sandbox. */
  readonly claim: Claim | null;
}

export interface DriverListener {
  /** This process has brought it to where it can be used. */
  usable?(claim: Claim): void;
  /** This process has brought it to its end. */
  over?(uid: string): void;
}

/**
 * Brings sandboxes to where their rows say they should be: claim, call the backend, write the outcome together with the
 * next steps, go on. Steps about different attempts are taken at the same time, each in its lane. It is the only part
 * that calls a backend to create, change or remove a sandbox.
 */
export class Driver {
  readonly #deps: ControlDeps;
  readonly #running = new Map<string, Work>();
  readonly #listener: DriverListener;
  #stopping = false;

  constructor(deps: ControlDeps, listener: DriverListener = {}) {
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
   * Claims the sandbox if it needs work and nobody else has it, and works until there is none. Answers the row as this
   * left it, or `null` when there was nothing to claim. Never rejects.
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
   * Goes on with a claim that was made in somebody else's transaction. Answers the last row it wrote, as soon as the
   * sandbox is usable or there is nothing to do. Never rejects.
   */
  resume(first: Claim): Promise<SandboxRecord> {
    const work = workOn(first);
    this.#running.set(first.sandbox.uid, work);
    this.#goOn(work);
    return work.answer.promise;
  }

  /** Ends the backend calls in flight, so that a changed wish is acted on at once. What is being removed stays unwanted. */
  interrupt(uid: string): void {
    for (const { step, controller } of this.#running.get(uid)?.lanes.values() ?? []) {
      if (step.kind !== 'teardown') controller.abort(new Interrupted('The sandbox is wanted otherwise now.'));
    }
  }

  /** Takes no new work. What is in flight is interrupted and goes on where it was after the next start. */
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
   * In the caller's transaction: writes the edit and takes the sandbox up at once, so that the hand-over costs no
   * commit of its own. While somebody has it already, the edit alone is written: they will see it.
   */
  async takeUp(tx: Tx, edit: SandboxEdit): Promise<TakenUp> {
    const { lease } = edit.row;
    if (this.#stopping || (lease && lease.until > edit.now)) {
      return { sandbox: await saveEdit(tx, this.#deps, edit), claim: null };
    }
    const attempts = [...(await tx.attempts.forSandbox(edit.row.uid))];
    const claim = await this.#proceed(tx, edit, attempts, this.newLease(edit.now).token, null);
    return { sandbox: claim.sandbox, claim };
  }

  /** Works on what `takeUp` took; where somebody else has it, sees to it that nothing is missed. */
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
      return this.#proceed(tx, edit, [...(await tx.attempts.forSandbox(uid))], lease.token, null);
    });
  }

  /** Takes the database steps, keeps or gives up the lease, and writes it all. */
  async #proceed(
    tx: Tx,
    edit: SandboxEdit,
    attempts: AttemptRecord[],
    token: string,
    known: SandboxDocuments | null,
    deferred: ReadonlyMap<string, number> = new Map(),
  ): Promise<Claim> {
    const deps = this.#deps;
    let documents = known;
    const documentsOf = async (generation: number) => {
      if (documents?.generation === generation) return documents;
      documents = await tx.sandboxes.documents(edit.row.uid, generation);
      if (!documents)
        throw new SandboxerError(
          'SBX_INTERNAL',
          `Generation ${generation} of ${edit.row.uid} has no recipe.`,
        );
      return documents;
    };
    const needed = await advanceSandbox(tx, deps, edit, attempts, documentsOf);
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

  /** Starts what the newest claim wants and is not under way; stops what it no longer wants. */
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
    // Somebody may have taken it up anew between our last commit and now.
    if (this.#running.get(uid) === work) this.#running.delete(uid);
    if (!isLiving(latest.sandbox.state)) this.#listener.over?.(uid);
    work.answer.resolve(latest.sandbox);
  }

  /** A lane keeps its name until its outcome is in `latest`: what follows is then never decided from an older row. */
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

  /** Somebody wants something of a sandbox that is usable and has only leftovers being removed: that need not wait. */
  async #lookAgain(work: Work): Promise<null> {
    if (!hasOnlyLeftovers(work.latest) || work.lanes.size === 0) return null;
    const claim = await this.#settle(work, null, 'look', async () => ({}));
    if (claim && work.lanes.size > 0) this.#goOn(this.#renewed(work, claim));
    return null;
  }

  async #perform(work: Work, lane: Lane): Promise<Claim | null> {
    const { step } = lane;
    switch (step.kind) {
      case 'provision':
        return this.#provision(work, lane, step.attempt, step.isFirstCall);
      case 'probe':
        return this.#probe(work, lane, step.attempt, null);
      case 'teardown':
        return this.#call(work, lane, 'teardown', teardownCall(this.#deps, step.attempt));
      case 'operate': {
        const { operation } = step;
        return this.#call(work, lane, operation.kind, operationCall(this.#deps, work.latest, operation));
      }
      case 'hedge':
        return this.#awaitHedge(work, lane, step.at);
    }
  }

  async #provision(
    work: Work,
    lane: Lane,
    attempt: AttemptRecord,
    isFirstCall: boolean,
  ): Promise<Claim | null> {
    const call = provisionCall(this.#deps, work.latest, attempt, isFirstCall);
    const settlement = await this.#outcome(work, lane, call);
    const made = call.made();
    if (settlement && made) return this.#probe(work, lane, made, settlement);
    return settlement && this.#settle(work, lane, 'provision', settlement);
  }

  /**
   * `provisioned` is what was not written yet: a backend that is ready at once has both in one commit. One that takes
   * its time has its handle written meanwhile.
   */
  async #probe(
    work: Work,
    lane: Lane,
    attempt: AttemptRecord,
    provisioned: Settlement | null,
  ): Promise<Claim | null> {
    const { settings } = this.#deps;
    const probing = this.#outcome(work, lane, probeCall(this.#deps, work.latest, attempt));
    let before = provisioned;
    if (before && !(await firstWithin(this.#deps, probing.then(ANSWERED), settings.handleWithinMs))) {
      const claim = await this.#settle(work, lane, 'provision', before);
      if (claim) this.#goOn(this.#renewed(work, claim));
      else lane.controller.abort(new LeaseLost());
      before = null;
    }
    const settlement = await probing;
    return settlement && this.#settle(work, lane, 'probe', before ? inTurn(before, settlement) : settlement);
  }

  async #call(work: Work, lane: Lane, label: string, call: StepCall): Promise<Claim | null> {
    const settlement = await this.#outcome(work, lane, call);
    return settlement && this.#settle(work, lane, label, settlement);
  }

  /** What is to be written of a backend call; `null` when nothing may be, as the sandbox is somebody else's. Never rejects. */
  async #outcome(work: Work, lane: Lane, { timeoutMs, run, failed }: StepCall): Promise<Settlement | null> {
    if (this.#stopping) return null;
    const guard = { timeoutMs, renewLease: () => this.#renewLease(work) };
    try {
      const done = await runStep(this.#deps, lane.controller, guard, run);
      return done();
    } catch (error) {
      return error instanceof LeaseLost ? null : failed(error);
    }
  }

  /** The lease is kept by the attempt that it waits for. */
  async #awaitHedge(work: Work, lane: Lane, at: number): Promise<Claim | null> {
    const { clock } = this.#deps;
    try {
      await clock.sleep(Math.max(0, at - clock.now()), lane.controller.signal);
    } catch {
      return null;
    }
    return this.#settle(work, lane, 'hedge', async () => ({}));
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

  /** The outcome of a step and the next ones, in one commit. An outcome of a lost lease is not written: the sweep finds what it left. */
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
      return this.#proceed(tx, edit, attempts, token, latest.documents, work.deferred);
    });
    attemptsJudged(deps, judged, latest.documents);
    return claim;
  }
}
