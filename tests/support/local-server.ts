/** The whole server with `ext.local` alone, in a directory of its own, and a client for it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerClient } from '../../src/client/sandboxer-client.ts';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import type { ResolvedConfig } from '../../src/main/config/config.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { removeDir, temporaryDir } from './child-server.ts';

export class LocalServer {
  readonly dir: string;
  readonly running: RunningServer;
  readonly client: SandboxerClient;

  private constructor(dir: string, running: RunningServer) {
    this.dir = dir;
    this.running = running;
    this.client = new SandboxerClient({ url: `unix:${running.socketPath}` });
  }

  static async start(
    change: (config: ResolvedConfig) => Partial<ResolvedConfig> = () => ({}),
    dir = temporaryDir(),
  ): Promise<LocalServer> {
    const env = { SANDBOXER_STATE_DIR: dir, SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env);
    return new LocalServer(dir, await serve({ config: { ...config, ...change(config) }, env }));
  }

  /** Why nothing can be tried here, or `null`. */
  async whyNot(): Promise<string | null> {
    const { items } = await this.client.extensions.list();
    const local = items.find(({ id }) => id === 'ext.local');
    if (local === undefined) return 'ext.local is not enabled';
    return local.health.status === 'undetected' ? local.health.detail : null;
  }

  async shell(id: string, script: string, user?: string) {
    const command = ['/bin/sh', '-c', script];
    return await this.client.exec(id, { command, ...(user === undefined ? {} : { user }) }).result();
  }

  /** What a script that must succeed prints. */
  async inside(id: string, script: string, user?: string): Promise<string> {
    const { stdout, stderr, exit } = await this.shell(id, script, user);
    if (exit.code !== 0) throw new Error(`${exit.code}: ${stderr}`);
    return stdout;
  }

  /** Stops the server alone: sandboxes, their spawner and the directory stay for the next one. */
  async stop(): Promise<void> {
    this.client.close();
    await this.running.stop();
  }

  async close(): Promise<void> {
    for await (const { sandbox_id } of this.client.sandboxes.list({ state: ['ready', 'active', 'paused'] })) {
      await this.client.sandboxes.destroy(sandbox_id);
    }
    this.client.close();
    await this.running.stop();
    const socket = join(this.dir, 'local', 'spawner.sock');
    const spawner = await SpawnerClient.open(socket, () => {}).catch(() => null);
    await spawner?.call('retire').catch(() => {});
    spawner?.close();
    for (let tries = 0; tries < 2_400 && existsSync(socket); tries++) await sleep(25);
    removeDir(this.dir);
  }
}
