import type { Command } from 'commander';
import type { ServerVersion } from '../../../contract/values/version.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { clientOfRunning } from '../../invocation/running-server.ts';
import { packageVersion } from '../../process/package-version.ts';

/** Returns the running server: a request for the version starts none. */
async function serverVersion(invocation: Invocation): Promise<ServerVersion | null> {
  const { url } = invocation.options;
  const client = clientOfRunning(invocation.options, invocation.env, 5_000);
  try {
    return await client.version();
  } catch (error) {
    if (url !== undefined) throw error;
    return null;
  } finally {
    client.close();
  }
}

export function define(command: Command, invocation: Invocation): void {
  command.action(async () => {
    const { printer } = invocation;
    const version = packageVersion();
    const server = await serverVersion(invocation);
    printer.result({ version, node: process.versions.node, server }, () =>
      printer.details([
        ['sandboxer', version],
        ['node', process.versions.node],
        ['server', server === null ? 'not running' : `${server.version} (API ${server.api_version})`],
        ['installation', server?.installation_id ?? null],
      ]),
    );
  });
}
