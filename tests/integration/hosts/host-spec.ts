import type { HostSpecInput } from '../../../src/contract/extensions/host.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';

/** How a test's sshd is registered. */
export function hostSpec(id: string, at: SshServer, over: Partial<HostSpecInput> = {}): HostSpecInput {
  const { destination, port, user, hostKeys, identityFile } = at.access();
  return {
    id,
    ssh: {
      destination,
      port: port as number,
      user: user as string,
      host_keys: [...hostKeys],
      identity_file: identityFile as string,
    },
    ...over,
  };
}
