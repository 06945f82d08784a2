/** The whole server on an engine, as its configuration file says, and a client for it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxerClient } from '../../src/client/sandboxer-client.ts';
import type { ResolvedConfig } from '../../src/main/config/config.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { removeDir, temporaryDir } from './child-server.ts';

export interface DockerServer {
  readonly dir: string;
  readonly server: RunningServer;
  readonly client: SandboxerClient;
  close(): Promise<void>;
}

export async function startDockerServer(
  docker: object,
  environment: Readonly<Record<string, string>> = {},
  change: (config: ResolvedConfig) => Partial<ResolvedConfig> = () => ({}),
): Promise<DockerServer> {
  const dir = temporaryDir();
  const path = join(dir, 'config.json');
  writeFileSync(path, JSON.stringify({ extensions: { docker } }));
  const env = {
    SANDBOXER_STATE_DIR: dir,
    SANDBOXER_CONFIG: path,
    SANDBOXER_LOG_LEVEL: 'silent',
    SANDBOXER_LOCAL: '0',
    ...environment,
  };
  const config = loadConfig(env);
  const server = await serve({ config: { ...config, ...change(config) }, env });
  const client = new SandboxerClient({ url: `unix:${server.socketPath}` });
  return {
    dir,
    server,
    client,
    async close() {
      client.close();
      await server.stop();
      removeDir(dir);
    },
  };
}
