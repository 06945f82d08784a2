/** An extension of its own in a directory of its own, for tests: everything it makes is gone at the end. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExtensionContext, Handle, ProvisionSpec } from '../../src/core/ports/extension.ts';
import { NO_INPUTS } from '../../src/core/ports/inputs.ts';
import { silentLog } from '../../src/core/ports/log.ts';
import type { SandboxSession } from '../../src/core/ports/session.ts';
import type { Recipe } from '../../src/core/recipe/recipe.ts';
import { createLocalExtension } from '../../src/extensions/local/create.ts';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import type { LocalExtension } from '../../src/extensions/local/extension.ts';
import type { LocalOptions } from '../../src/extensions/local/host/options.ts';
import { defaultRecipe } from '../../src/testing/conformance/default-recipe.ts';
import { runProgram } from '../../src/testing/conformance/run-program.ts';

// Only what is missing is built by itself: a test must not run on yesterday's.
for (const script of ['build-agent.sh', 'build-spawner.sh']) {
  spawnSync('sh', [join(import.meta.dirname, '..', '..', 'scripts', script)], { stdio: 'inherit' });
}

export interface Living {
  readonly spec: ProvisionSpec;
  readonly handle: Handle;
  readonly session: SandboxSession;
}

const OWNER = 'local-tests';

export class LocalWorld {
  readonly directory = mkdtempSync(join(tmpdir(), 'sandboxer-local-'));
  readonly #options: Partial<LocalOptions>;
  extension: LocalExtension;

  constructor(options: Partial<LocalOptions> = {}) {
    this.#options = options;
    this.extension = this.#create();
  }

  get base(): string {
    return join(this.directory, 'local');
  }

  get context(): ExtensionContext {
    const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
    return { signal: new AbortController().signal, clock, log: silentLog, host: null };
  }

  /** Why nothing can be tried here, or `null`. */
  async whyNot(): Promise<string | null> {
    const { status, detail } = await this.extension.probe(this.context);
    return status === 'healthy' ? null : detail;
  }

  spec(recipe: Partial<Recipe> = {}, more: Partial<ProvisionSpec> = {}): ProvisionSpec {
    const sandboxUid = `t${randomBytes(8).toString('hex')}`;
    return {
      stamp: { sandboxUid, attemptId: `${sandboxUid}-g1-a1`, owner: OWNER },
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

  async establish(recipe: Partial<Recipe> = {}, more: Partial<ProvisionSpec> = {}): Promise<Living> {
    const spec = this.spec(recipe, more);
    return await this.open(spec, await this.extension.provision(spec, this.context));
  }

  async open(spec: ProvisionSpec, handle: Handle): Promise<Living> {
    await this.extension.waitReady(handle, this.context);
    return { spec, handle, session: await this.extension.connect(handle, this.context) };
  }

  async end({ spec, handle, session }: Living): Promise<void> {
    await session.close();
    const { gone } = await this.extension.teardown({ stamp: spec.stamp, handle }, this.context);
    if (!gone) throw new Error('it is not gone');
  }

  async owned(): Promise<string[]> {
    const found: string[] = [];
    for await (const { stamp } of this.extension.listOwned(OWNER)) found.push(stamp.attemptId);
    return found;
  }

  /** As after a crash of the control plane: nothing but what is on disk is known. */
  async restart(): Promise<void> {
    await this.extension.close();
    this.extension = this.#create();
  }

  async spawnerPid(): Promise<number> {
    const client = await SpawnerClient.open(join(this.base, 'spawner.sock'), () => {});
    const { pid } = await client.call('hello');
    client.close();
    return Number(pid);
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Leaves the directory: an ordinary user may not remove what belongs to his subordinate ids. */
  async stop(): Promise<void> {
    for await (const { stamp, handle } of this.extension.listOwned(OWNER)) {
      await this.extension.teardown({ stamp, handle }, this.context);
    }
    await this.extension.close();
    const socket = join(this.base, 'spawner.sock');
    const client = await SpawnerClient.open(socket, () => {}).catch(() => null);
    await client?.call('retire').catch(() => {});
    client?.close();
    for (let tries = 0; tries < 2_400 && existsSync(socket); tries++) await sleep(25);
    await sleep(50);
  }

  #create(): LocalExtension {
    return createLocalExtension({ directory: this.base, lingerMs: 2_000, ...this.#options });
  }
}

export async function shell(session: SandboxSession, script: string, user: string | null = null) {
  const { code, stdout, stderr, exit } = await runProgram(session, ['/bin/sh', '-c', script], {
    user,
    timeoutSeconds: 120,
  });
  return { code, exit, stdout: stdout.toString(), stderr: stderr.toString() };
}
