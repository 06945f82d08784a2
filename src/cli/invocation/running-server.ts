import { SandboxerClient } from '../../client/sandboxer-client.ts';
import { defaultSocketPath } from '../../client/transport/server-address.ts';
import type { GlobalOptions } from './global-options.ts';

/** A client of the server as it is: where there is none, none is started, and nobody is asked twice. */
export function clientOfRunning(
  { url, key, workspace }: Pick<GlobalOptions, 'url' | 'key' | 'workspace'>,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): SandboxerClient {
  const address = url ?? `unix:${defaultSocketPath(env)}`;
  return new SandboxerClient({ url: address, key, workspace, maxRetries: 0, timeoutMs });
}
