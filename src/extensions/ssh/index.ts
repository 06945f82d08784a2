import type { SshOptions } from './config.ts';
import { CAPABILITIES } from './config.ts';
import { SshExtension } from './extension.ts';
import { HANDLE_VERSION } from './handle.ts';

/** A plain directory and user on a registered host. */
export function createSshExtension(options: SshOptions): SshExtension {
  return new SshExtension(
    {
      id: 'ext.ssh',
      title: 'A directory on a host',
      handleVersion: HANDLE_VERSION,
      capabilities: CAPABILITIES,
      runsOn: 'hosts',
      price: null,
      provisionTimeoutSeconds: 120,
    },
    options,
  );
}
