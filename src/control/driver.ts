import { SandboxerError } from '../contract/errors.ts';
import type { AttemptRecord } from '../core/attempt.ts';
import { isLiving } from '../core/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../core/sandbox.ts';
import type { Tx } from '../core/store.ts';
import type { BackendStep } from './advance-sandbox.ts';
import { advanceSandbox } from './advance-sandbox.ts';
import { backendFailure } from './backend-error.ts';
import type { ControlDeps } from './deps.ts';
import { attemptFailed, attemptReady, attemptStarted } from './observe-attempt.ts';
import { performOperation, performProbe, performProvision, performTeardown } from './perform-step.ts';
import { Interrupted, LeaseLost, runStep } from './run-step.ts';
import { SandboxEdit, saveEdit } from './sandbox-edit.ts';
import type { Settlement } from './settle-step.ts';
import {
  settleAttemptFailed,
  settleOperated,
  settleOperationFailed,
  settleProvisioned,
  settleProvisionFailed,
  settleReady,
  settleTeardown,
} from './settle-step.ts';

/** A sandbox that this process holds the lease of, and what to do with it; at `rest` the lease is given up. */
export interface Claim {
  readonly sandbox: SandboxRecord;
  readonly token: string;
  readonly step: BackendStep;
  readonly documents: SandboxDocuments;
}

export interface TakenUp {
  readonly sandbox: SandboxRecord;
  /** `null` when somebody else has the sandbox. */
  readonly claim: Claim | null;
}

/**
 * Brings sandboxes to where their rows say they should be, one backend call at a time: claim, call, write the outcome
 * together with the next step, go on. It is the only part that calls a backend to create, change or remove a sandbox.
 */
export class Driver {
  readonly #deps: ControlDeps;
  readonly #running = new Map<string, { readonly token: string; readonly controller: AbortController }>();
  readonly #onOver: (uid: string) => void;
  #stopping = false;

  /** `onOver` hears of every sandbox that this process has brought to its end. */
  constructor(deps: ControlDeps, onOver: (uid: string) => void = () => {}) {
    this.#deps = deps;
    this.#onOver = onOver;
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
    if (this.#stopping || this.#running.has(uid)) return null;
    try {
      const claim = await this.#claim(uid);
      return claim ? await this.resume(claim) : null;
    } catch (error) {
      this.#deps.log.error({ err: error, sandbox: uid }, 'a sandbox could not be claimed; it stays due');
      return null;
    }
  }

  /** Goes on with a claim that was made in somebody else's transaction. Answers the last row it wrote. Never rejects. */
  async resume(first: Claim): Promise<SandboxRecord> {
    const { uid } = first.sandbox;
    this.#running.set(uid, { token: first.token, controller: new AbortController() });
    let claim: Claim = first;
    try {
      while (claim.step.kind !== 'rest') {
        const next = await this.#perform(claim);
        if (!next) break;
        claim = next;
      }
    } catch (error) {
      this.#deps.log.error(
        { err: error, sandbox: uid },
        'work on a sandbox was given up; its lease will run out',
      );
    } finally {
      // Somebody may have taken it up anew between our last commit and now.
      if (this.#running.get(uid)?.token === first.token) this.#running.delete(uid);
      if (!isLiving(claim.sandbox.state)) this.#onOver(uid);
    }
    return claim.sandbox;
  }

  /** Ends the backend call in flight, so that a changed wish is acted on at once. */
  interrupt(uid: string): void {
    this.#running.get(uid)?.controller.abort(new Interrupted('The sandbox is wanted otherwise now.'));
  }

  /** Takes no new work. What is in flight is interrupted and goes on where it was after the next start. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const { controller } of this.#running.values())
      controller.abort(new LeaseLost('The server is stopping.'));
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
    const step = await advanceSandbox(tx, edit, attempts, documentsOf);
    if (step.kind === 'rest') {
      edit.patch({ lease: null, workDueAt: null });
      return {
        sandbox: await saveEdit(tx, deps, edit),
        token,
        step,
        documents: documents as SandboxDocuments,
      };
    }
    const own = await documentsOf(edit.row.generation);
    edit.patch({ lease: { owner: deps.instance, token, until: edit.now + deps.settings.leaseMs } });
    return { sandbox: await saveEdit(tx, deps, edit), token, step, documents: own };
  }

  async #perform(claim: Claim): Promise<Claim | null> {
    const { step, sandbox, documents } = claim;
    const { settings } = this.#deps;
    switch (step.kind) {
      case 'provision': {
        const { attempt, isFirstCall } = step;
        const timeoutMs = this.#provisionTimeoutMs(attempt);
        attemptStarted(this.#deps, attempt, documents);
        return this.#call(
          claim,
          'provision',
          timeoutMs,
          (signal) => performProvision(this.#deps, sandbox, attempt, documents, signal),
          (handle) => settleProvisioned(attempt, handle),
          (error) => {
            attemptFailed(this.#deps, attempt, documents, error);
            return settleProvisionFailed(attempt, backendFailure(error, attempt.extensionId), isFirstCall);
          },
        );
      }
      case 'probe': {
        const { attempt } = step;
        return this.#call(
          claim,
          'probe',
          this.#provisionTimeoutMs(attempt),
          (signal) => performProbe(this.#deps, sandbox, attempt, documents, signal),
          (ready) => {
            attemptReady(this.#deps, attempt, documents);
            return settleReady(attempt, ready, documents);
          },
          (error) => {
            attemptFailed(this.#deps, attempt, documents, error);
            return settleAttemptFailed(attempt, {
              ...backendFailure(error, attempt.extensionId),
              creation: 'created',
            });
          },
        );
      }
      case 'teardown': {
        const { attempt } = step;
        return this.#call(
          claim,
          'teardown',
          settings.teardownTimeoutMs,
          (signal) => performTeardown(this.#deps, attempt, signal),
          (report) => settleTeardown(attempt, report, null),
          (error) => settleTeardown(attempt, null, backendFailure(error, attempt.extensionId)),
        );
      }
      case 'operate': {
        const { operation } = step;
        return this.#call(
          claim,
          operation.kind,
          settings.operationTimeoutMs,
          (signal) => performOperation(this.#deps, sandbox, operation, documents, signal),
          (outcome) => settleOperated(operation, outcome),
          (error) => settleOperationFailed(operation, backendFailure(error, sandbox.extensionId as string)),
        );
      }
      case 'rest':
        return null;
    }
  }

  #provisionTimeoutMs(attempt: AttemptRecord): number {
    const seconds = this.#deps.extensions.get(attempt.extensionId)?.header.provisionTimeoutSeconds ?? 60;
    return seconds * 1000;
  }

  async #call<T>(
    claim: Claim,
    label: string,
    timeoutMs: number,
    call: (signal: AbortSignal) => Promise<T>,
    onSuccess: (result: T) => Settlement,
    onFailure: (error: unknown) => Settlement,
  ): Promise<Claim | null> {
    const { uid } = claim.sandbox;
    // A fresh controller for each call: an interrupt ends the call it met, not the ones that follow from it.
    const controller = new AbortController();
    if (this.#stopping) return null;
    this.#running.set(uid, { token: claim.token, controller });
    const guard = { timeoutMs, renewLease: () => this.#renewLease(claim) };
    let settlement: Settlement;
    try {
      settlement = onSuccess(await runStep(this.#deps, controller, guard, call));
    } catch (error) {
      if (error instanceof LeaseLost) return null;
      settlement = onFailure(error);
    }
    return this.#settle(claim, label, settlement);
  }

  async #renewLease(claim: Claim): Promise<boolean> {
    const deps = this.#deps;
    return deps.store.transaction('renew', async (tx) => {
      const row = await tx.sandboxes.get(claim.sandbox.uid);
      if (!row || row.lease?.token !== claim.token) return false;
      await tx.sandboxes.update({
        ...row,
        lease: { ...row.lease, until: deps.clock.now() + deps.settings.leaseMs },
      });
      return true;
    });
  }

  /** The outcome of a call and the next step, in one commit. An outcome of a lost lease is not written: the sweep finds what it left. */
  async #settle(claim: Claim, label: string, settlement: Settlement): Promise<Claim | null> {
    const deps = this.#deps;
    return deps.store.transaction(`settle-${label}`, async (tx) => {
      const now = deps.clock.now();
      const row = await tx.sandboxes.get(claim.sandbox.uid);
      if (!row || row.lease?.token !== claim.token) return null;
      const edit = new SandboxEdit(row, deps, now);
      const attempts = [...(await tx.attempts.forSandbox(row.uid))];
      const verdict = await settlement({ tx, deps, edit, attempts });
      if (verdict.retryAt === undefined)
        return this.#proceed(tx, edit, attempts, claim.token, claim.documents);
      edit.patch({ lease: null, workDueAt: verdict.retryAt });
      return { ...claim, sandbox: await saveEdit(tx, deps, edit), step: { kind: 'rest' } };
    });
  }
}
