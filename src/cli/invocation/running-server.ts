import { SandboxerClient } from '../../client/sandboxer-client.ts';
import { defaultSocketPath } from '../../client/transport/server-address.ts';
import type { GlobalOptions } from './global-options.ts';

/** Returns a client of the running server: where none runs, none is started, and none is contacted twice. */
export function clientOfRunning(
  { url, key, workspace }: Pick<GlobalOptions, 'url' | 'key' | 'workspace'>,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): SandboxerClient {
  const address = url ?? `unix:${defaultSocketPath(env)}`;
  return new SandboxerClient({ url: address, key, workspace, maxRetries: 0, timeoutMs });
}
