/** An engine of its own and ext.docker on it, for tests: everything it makes is gone at the end. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExtensionContext, Handle, ProvisionSpec } from '../../src/core/ports/extension.ts';
import { NO_INPUTS } from '../../src/core/ports/inputs.ts';
import { silentLog } from '../../src/core/ports/log.ts';
import type { SandboxSession } from '../../src/core/ports/session.ts';
import type { Recipe } from '../../src/core/recipe/recipe.ts';
import type { DockerOptions } from '../../src/extensions/docker/containers/options.ts';
import { createDockerExtension } from '../../src/extensions/docker/create.ts';
import type { DockerExtension } from '../../src/extensions/docker/extension.ts';
import { defaultRecipe } from '../../src/testing/conformance/default-recipe.ts';
import { runProgram } from '../../src/testing/conformance/run-program.ts';
import type { Dockerd, DockerdOptions } from './dockerd.ts';
import { startDockerd } from './dockerd.ts';

// Only what is missing is built by itself: a test must not run on yesterday's.
spawnSync('sh', [join(import.meta.dirname, '..', '..', 'scripts', 'build-agent.sh')], { stdio: 'inherit' });

export interface LivingContainer {
  readonly spec: ProvisionSpec;
  readonly handle: Handle;
  readonly session: SandboxSession;
}

export class DockerWorld {
  readonly engine: Dockerd;
  readonly owner: string;
  readonly #options: Partial<DockerOptions>;
  #extension: DockerExtension | null = null;

  constructor(engine: Dockerd, options: Partial<DockerOptions> = {}, owner = 'docker-tests') {
    this.engine = engine;
    this.owner = owner;
    this.#options = options;
  }

  static async start(
    options: Partial<DockerOptions> = {},
    daemon: DockerdOptions = {},
  ): Promise<DockerWorld> {
    const world = new DockerWorld(await startDockerd(daemon), options);
    await world.open();
    return world;
  }

  get extension(): DockerExtension {
    if (this.#extension === null) throw new Error('open() comes first');
    return this.#extension;
  }

  get options(): DockerOptions {
    return {
      url: `unix://${this.engine.socket}`,
      tls: null,
      directory: join(this.engine.directory, `doors-${this.owner}`),
      defaultImage: this.engine.image,
      images: { allow: ['*'], pull: 'never', requireDigest: false, logins: {} },
      network: null,
      ...this.#options,
    };
  }

  get context(): ExtensionContext {
    return this.contextWith(new AbortController().signal);
  }

  contextWith(signal: AbortSignal): ExtensionContext {
    const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
    return { signal, clock, log: silentLog, host: null };
  }

  async open(): Promise<void> {
    this.#extension = await createDockerExtension(this.options);
  }

  /** As after a crash of the control plane: nothing but what the engine knows is known. */
  async restart(): Promise<void> {
    await this.extension.close();
    await this.open();
  }

  spec(recipe: Partial<Recipe> = {}, more: Partial<ProvisionSpec> = {}): ProvisionSpec {
    const sandboxUid = `t${randomBytes(8).toString('hex')}`;
    return {
      stamp: { sandboxUid, attemptId: `${sandboxUid}-g1-a1`, owner: this.owner },
      sandboxId: sandboxUid,
      workspaceId: 'tests',
      generation: 1,
      recipe: { ...defaultRecipe(this.extension.header.capabilities), ...recipe },
      labels: {},
      secrets: [],
      inputs: NO_INPUTS,
      endsAt: Date.now() + 600_000,
      ...more,
    };
  }

  async establish(recipe: Partial<Recipe> = {}, more: Partial<ProvisionSpec> = {}): Promise<LivingContainer> {
    const spec = this.spec(recipe, more);
    return await this.reach(spec, await this.extension.provision(spec, this.context));
  }

  async reach(spec: ProvisionSpec, handle: Handle): Promise<LivingContainer> {
    await this.extension.waitReady(handle, this.context);
    return { spec, handle, session: await this.extension.connect(handle, this.context) };
  }

  async end({ spec, handle, session }: LivingContainer): Promise<void> {
    await session.close();
    const { gone } = await this.extension.teardown({ stamp: spec.stamp, handle }, this.context);
    if (!gone) throw new Error('it is not gone');
  }

  async owned(): Promise<string[]> {
    const found: string[] = [];
    for await (const { stamp } of this.extension.listOwned(this.owner, this.context))
      found.push(stamp.attemptId);
    return found.sort();
  }

  /** The one container of this sandbox, as the engine describes it. */
  async inspect({ handle }: Pick<LivingContainer, 'handle'>): Promise<Record<string, unknown>> {
    const { container } = handle.data as { container: string };
    return JSON.parse(await this.engine.docker('inspect', container))[0];
  }

  async close(): Promise<void> {
    await this.extension.close();
    await this.engine.close();
  }
}

export async function output(session: SandboxSession, script: string): Promise<string> {
  const { stdout, stderr } = await runProgram(session, ['/bin/sh', '-c', script], { timeoutSeconds: 60 });
  return (stdout.toString() + stderr.toString()).trim();
}
