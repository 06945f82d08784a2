import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';

/**
 * Reads the files of ops-bridge, which keeps one OpenSSH configuration per tunnel, `<directory>/<name>.conf`: HostName, Port,
 * ProxyJump. Returns the file of a tunnel. It is read through ssh and never written.
 */
export async function tunnelConfig(directory: string | null, name: string): Promise<string> {
  if (directory === null)
    throw new SandboxerError('SBX_HOST_UNREACHABLE', `The tunnel ${name} needs ops-bridge.`, {
      creation: 'not_created',
      remedy: 'Name its directory in the configuration: hosts.ops_bridge.directory',
    });
  const path = join(directory, `${name}.conf`);
  await access(path).catch(() => {
    throw new SandboxerError(
      'SBX_HOST_UNREACHABLE',
      `ops-bridge has no tunnel ${name}: there is no ${path}.`,
      {
        creation: 'not_created',
        remedy: 'Open the tunnel, or correct its name.',
      },
    );
  });
  return path;
}
