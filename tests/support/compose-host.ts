/**
 * A host as `ext.compose-ssh` meets one: a real sshd beside a real engine, in namespaces of their own, with the
 * `docker` and `docker-compose` of this machine.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PlacementHost } from '../../src/core/ports/extension.ts';
import type { SshServer } from '../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../src/testing/ssh-server.ts';
import type { Dockerd, DockerdOptions } from './dockerd.ts';
import { startDockerd, whyNoDockerd } from './dockerd.ts';

export interface ComposeHost {
  readonly engine: Dockerd;
  readonly server: SshServer;
  readonly host: PlacementHost;
  /** Where the extension is to keep its stacks on this host. */
  readonly directory: string;
  close(): Promise<void>;
}

/** Why there can be none here, or `null`. */
export function whyNoComposeHost(): string | null {
  const missing = whyNoDockerd() ?? sshServerMissing();
  if (missing !== null) return missing;
  if (spawnSync('which', ['docker-compose']).status !== 0) return 'docker-compose is not installed';
  return null;
}

export async function startComposeHost(id = 'box', options: DockerdOptions = {}): Promise<ComposeHost> {
  const engine = await startDockerd({ ...options, link: true });
  const directory = join(engine.directory, 'sandboxer');
  const config = join(engine.directory, 'client');
  mkdirSync(config, { recursive: true });
  try {
    const server = await startSshServer({
      address: engine.address,
      wrapper: engine.inside(),
      environment: { DOCKER_HOST: `unix://${engine.socket}`, DOCKER_CONFIG: config },
    });
    return {
      engine,
      server,
      host: { id, labels: {}, ssh: server.access() },
      directory,
      close: async () => {
        await server.stop();
        await engine.close();
      },
    };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
