import type { SshOptions } from './config.ts';
import { CAPABILITIES } from './config.ts';
import { SshExtension } from './extension.ts';
import { handles } from './handle.ts';

/** A plain directory and user on a registered host. */
export function createSshExtension(options: SshOptions): SshExtension {
  return new SshExtension(
    {
      id: 'ext.ssh',
      title: 'A directory on a host',
      handleVersion: handles.version,
      capabilities: CAPABILITIES,
      runsOn: 'hosts',
      price: null,
      provisionTimeoutSeconds: 120,
    },
    options,
  );
}
