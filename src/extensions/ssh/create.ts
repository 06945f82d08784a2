import type { SshOptions } from './config.ts';
import { CAPABILITIES } from './config.ts';
import { SshExtension } from './extension.ts';
import definition from './index.ts';

/** Makes the extension for a plain directory and user on a registered host. */
export function createSshExtension(options: SshOptions): SshExtension {
  return new SshExtension(
    {
      id: definition.id,
      title: definition.title,
      handleVersion: definition.handle.version,
      capabilities: CAPABILITIES,
      runsOn: 'hosts',
      price: null,
      provisionTimeoutSeconds: 120,
    },
    options,
  );
}
