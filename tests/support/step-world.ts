/** One sandbox and its attempts in a store, one metered backend in this process, on a clock that a test moves. */

import type { SettleScope } from '../../src/control/lifecycle/edit/attempt-edit.ts';
import { AUTOMATION, SandboxEdit, saveEdit } from '../../src/control/lifecycle/edit/sandbox-edit.ts';
import type { Step, StepSubject, Verdict } from '../../src/control/lifecycle/steps/step.ts';
import type { ControlPorts } from '../../src/control/ports/control-ports.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import { ledger } from '../../src/core/credits/ledger/ledger.ts';
import { HealthBook } from '../../src/core/health/health-book.ts';
import type { AttemptRecord } from '../../src/core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../src/core/lifecycle/sandbox.ts';
import { silentLog } from '../../src/core/ports/log.ts';
import { UseBook } from '../../src/core/routing/learned-use.ts';
import { CAPABILITIES } from '../../src/extensions/saas-stub/config.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import type { FaultRule } from '../../src/extensions/saas-stub/wire/protocol.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../src/extensions/saas-stub/world/world-transport.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import {
  sampleAttempt,
  sampleDocuments,
  sampleHold,
  sampleSandbox,
  T0,
} from '../../src/store/suite/sample-records.ts';
import { defaultRecipe } from '../../src/testing/conformance/default-recipe.ts';

export const STEP_UID = 'sbx_step';
export const BACKEND = 'ext.saas-stub';

export interface StepWorldOptions {
  readonly faults?: readonly FaultRule[];
  readonly recipe?: Partial<SandboxDocuments['recipe']>;
  readonly sandbox?: Partial<SandboxRecord>;
}

function documentsWith(recipe: Partial<SandboxDocuments['recipe']> = {}): SandboxDocuments {
  return { ...sampleDocuments(STEP_UID), recipe: { ...defaultRecipe(CAPABILITIES), ...recipe } };
}

export class StepWorld {
  readonly clock = { at: T0, now: () => this.clock.at, sleep: async () => {} };
  readonly backend: StubWorld;
  readonly store = new MemoryStore(memoryDatabase());
  readonly deps: ControlPorts;
  #ids = 0;

  readonly documents: SandboxDocuments;

  private constructor({ faults = [], recipe }: StepWorldOptions) {
    this.documents = documentsWith(recipe);
    this.backend = new StubWorld({ clock: this.clock, createMs: 0, deleteMs: 0, faults });
    const transport = new WorldTransport(this.backend, this.clock);
    const extension = createSaasStubExtension({ transport, price: null, teardownWaitMs: 50 });
    this.deps = {
      store: this.store,
      clock: this.clock,
      log: silentLog,
      ids: { next: (prefix) => `${prefix}_${++this.#ids}`, random: () => 0 },
      ledger,
      extensions: {
        get: (id) => (id === BACKEND ? extension : undefined),
        all: () => [extension],
        health: () => ({ status: 'healthy', detail: '', checked_at: null, checks: [] }),
        version: '1',
      },
      health: new HealthBook(),
      uses: new UseBook(),
      settings: DEFAULT_SETTINGS,
      owner: 'test',
      instance: 'test',
      catalogue: () => {
        throw new Error('A step reads no profile.');
      },
      profilesChanged: async () => {},
      resolveSecrets: async () => [],
    };
  }

  /** The sandbox is in `state`, with these attempts at the backend. */
  static async with(
    state: SandboxRecord['state'],
    attempts: readonly Partial<AttemptRecord>[],
    options: StepWorldOptions = {},
  ): Promise<StepWorld> {
    const world = new StepWorld(options);
    await world.store.transaction('sample', async (tx) => {
      await tx.sandboxes.insert(sampleSandbox({ uid: STEP_UID, state, ...options.sandbox }));
      await tx.sandboxes.insertDocuments(world.documents);
      for (const over of attempts)
        await tx.attempts.insert(sampleAttempt(STEP_UID, { extensionId: BACKEND, ...over }));
    });
    return world;
  }

  async subject(): Promise<StepSubject> {
    return { sandbox: await this.sandbox(), documents: this.documents };
  }

  sandbox(): Promise<SandboxRecord> {
    return this.store.read('sandbox', async (tx) => (await tx.sandboxes.get(STEP_UID)) as SandboxRecord);
  }

  attempt(n = 1): Promise<AttemptRecord> {
    return this.store.read('attempt', async (tx) => {
      const all = await tx.attempts.forSandbox(STEP_UID);
      return all.find((attempt) => attempt.n === n) as AttemptRecord;
    });
  }

  async eventTypes(): Promise<string[]> {
    const range = { workspaceId: 'default', after: 0, limit: 100 };
    return (await this.store.read('events', (tx) => tx.events.list(range))).map(({ type }) => type);
  }

  /** Moves the sandbox as a request or a sweep does beside the step. */
  async move(to: SandboxRecord['state']): Promise<void> {
    await this.#change((edit) => edit.move(to, AUTOMATION));
  }

  async patch(change: Parameters<SandboxEdit['patch']>[0]): Promise<void> {
    await this.#change((edit) => edit.patch(change));
  }

  /** Gives the sandbox the hold that its admission would have made. */
  async hold(): Promise<void> {
    const hold = sampleHold('hold-step', { sandboxUid: STEP_UID });
    await this.store.transaction('hold', (tx) => tx.ledger.insertHold(hold));
    await this.patch({ holdId: hold.id });
  }

  async #change(change: (edit: SandboxEdit) => void): Promise<void> {
    await this.store.transaction('change', async (tx) => {
      const edit = new SandboxEdit(
        (await tx.sandboxes.get(STEP_UID)) as SandboxRecord,
        this.deps,
        this.clock.at,
      );
      change(edit);
      await saveEdit(tx, this.deps, edit);
    });
  }

  /** Takes the step as the driver does: the call, then its end in one transaction. */
  async take<Outcome>(step: Step<Outcome>): Promise<Verdict> {
    const ended = await step.call(new AbortController().signal).then(
      (outcome) => (scope: SettleScope) => step.settle(scope, outcome),
      (error: unknown) => (scope: SettleScope) => step.fail(scope, error),
    );
    return this.store.transaction(`settle-${step.label}`, async (tx) => {
      const row = (await tx.sandboxes.get(STEP_UID)) as SandboxRecord;
      const edit = new SandboxEdit(row, this.deps, this.clock.at);
      const attempts = [...(await tx.attempts.forSandbox(STEP_UID))];
      const verdict = await ended({ tx, deps: this.deps, edit, attempts, judged: [] });
      await saveEdit(tx, this.deps, edit);
      return verdict;
    });
  }
}
