import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type {
  Extension,
  ExtensionContext,
  Handle,
  Owned,
  ProvisionSpec,
  ResolvedSecret,
} from '../../core/ports/extension.ts';
import type { InputTrees } from '../../core/ports/inputs.ts';
import { NO_INPUTS } from '../../core/ports/inputs.ts';
import { silentLog } from '../../core/ports/log.ts';
import type { SandboxFiles, SandboxSession } from '../../core/ports/session.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import { capabilitiesAt } from '../../core/routing/isolation-level.ts';
import type { ConformanceOptions } from './conformance-options.ts';
import { defaultRecipe } from './default-recipe.ts';

export interface Established {
  readonly spec: ProvisionSpec;
  readonly handle: Handle;
  readonly session: SandboxSession;
  /** Throws when the session has no files: for tests that apply only where files are declared. */
  readonly files: SandboxFiles;
}

export interface SpecParts {
  readonly recipe?: Partial<Recipe>;
  readonly secrets?: readonly ResolvedSecret[];
  readonly owner?: string;
  readonly inputs?: InputTrees;
  readonly endsAt?: number;
}

const LIFE_MS = 600_000;

const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  },
};

/** The extension under test, with all that a test needs to use it and to remove every trace. */
export class Subject {
  readonly extension: Extension;
  readonly options: ConformanceOptions;
  readonly clock: Clock;
  /** Owner in the stamp of everything this run makes; other names start with it. */
  readonly owner = `conformance-${randomBytes(5).toString('hex')}`;
  readonly #made: ProvisionSpec[] = [];
  readonly #sessions: SandboxSession[] = [];
  #slowestMs = 0;
  #shared: Promise<Established> | null = null;

  constructor(extension: Extension, options: ConformanceOptions) {
    this.extension = extension;
    this.options = options;
    this.clock = options.clock ?? systemClock;
  }

  /** Capabilities at the isolation level that the run is about. */
  get capabilities(): CapabilityVector {
    const { capabilities } = this.extension.header;
    return capabilitiesAt(
      capabilities,
      this.options.recipe?.isolation ?? defaultRecipe(capabilities).isolation,
    );
  }

  get graceMs(): number {
    return this.options.graceMs ?? 30_000;
  }

  context(signal: AbortSignal = new AbortController().signal): ExtensionContext {
    return { signal, clock: this.clock, log: silentLog, host: this.options.host ?? null };
  }

  /** Returns the spec of a new sandbox. The sweep at the end removes whatever comes of it. */
  spec(parts: SpecParts = {}): ProvisionSpec {
    const sandboxUid = `conf${randomBytes(8).toString('hex')}`;
    const recipe = { ...defaultRecipe(this.capabilities), ...this.options.recipe, ...parts.recipe };
    const spec: ProvisionSpec = {
      stamp: { sandboxUid, attemptId: `${sandboxUid}-g1-a1`, owner: parts.owner ?? this.owner },
      sandboxId: sandboxUid,
      workspaceId: 'conformance',
      generation: 1,
      recipe,
      labels: {},
      secrets: parts.secrets ?? [],
      inputs: parts.inputs ?? NO_INPUTS,
      endsAt: parts.endsAt ?? this.clock.now() + LIFE_MS,
    };
    this.#made.push(spec);
    return spec;
  }

  async establish(parts: SpecParts = {}): Promise<Established> {
    const begun = this.clock.now();
    const spec = this.spec(parts);
    const established = await this.open(spec, await this.extension.provision(spec, this.context()));
    this.#slowestMs = Math.max(this.#slowestMs, this.clock.now() - begun);
    return established;
  }

  /** A short lifetime that outlasts the start of a sandbox, as slow as starts are today. */
  get shortLifeMs(): number {
    return (this.options.deadManMs ?? 3_000) + 2 * this.#slowestMs;
  }

  /** Waits until the sandbox is ready and opens a session. */
  async open(spec: ProvisionSpec, handle: Handle): Promise<Established> {
    const limit = AbortSignal.timeout(this.extension.header.provisionTimeoutSeconds * 1000);
    await this.extension.waitReady(handle, this.context(limit));
    const session = await this.extension.connect(handle, this.context());
    this.#sessions.push(session);
    return {
      spec,
      handle,
      session,
      get files() {
        if (session.files === undefined) throw new Error('The session has no files.');
        return session.files;
      },
    };
  }

  /** Returns the sandbox shared by tests that change only files of their own. */
  async shared(): Promise<Established> {
    this.#shared ??= this.establish();
    return await this.#shared;
  }

  async owned(owner = this.owner): Promise<Owned[]> {
    const found: Owned[] = [];
    for await (const item of this.extension.listOwned(owner, this.context())) found.push(item);
    return found;
  }

  async ownedAttempts(owner = this.owner): Promise<string[]> {
    return (await this.owned(owner)).map(({ stamp }) => stamp.attemptId).sort();
  }

  async teardown(spec: ProvisionSpec, handle: Handle | null = null) {
    return await this.extension.teardown({ stamp: spec.stamp, handle }, this.context());
  }

  /** Repeats the check until it is true, or the grace is over. */
  async eventually(check: () => Promise<boolean>, withinMs = this.graceMs): Promise<boolean> {
    for (const until = Date.now() + withinMs; ; ) {
      if (await check()) return true;
      if (Date.now() >= until) return false;
      await sleep(50);
    }
  }

  /** Removes everything; rejects when something cannot be removed. */
  async sweep(): Promise<void> {
    for (const session of this.#sessions.splice(0)) await session.close().catch(() => {});
    this.#shared = null;
    const left: string[] = [];
    for (const spec of this.#made.splice(0)) {
      const report = await this.teardown(spec).catch((error: unknown) => ({ gone: false, error }));
      if (!report.gone) left.push(spec.stamp.attemptId);
    }
    if (left.length > 0) throw new Error(`Not gone at the end: ${left.join(', ')}`);
  }
}
