import type { ExtensionHeader } from '../../core/ports/extension.ts';
import { ownAgents } from '../shared/own-programs.ts';
import type { ComposeOptions } from './config.ts';
import { capabilitiesFor } from './config.ts';
import { ComposeExtension } from './extension.ts';
import definition from './index.ts';
import { StackInputs } from './stack/stack-inputs.ts';

/** Makes the extension that runs a repository’s compose stack on a registered host, over OpenSSH. */
export function createComposeExtension(options: ComposeOptions = {}): ComposeExtension {
  const header: ExtensionHeader = {
    id: definition.id,
    title: definition.title,
    runsOn: 'hosts',
    handleVersion: definition.handle.version,
    capabilities: capabilitiesFor(options.engine ?? 'auto'),
    price: null,
    provisionTimeoutSeconds: 900,
    shipsInputs: true,
    inputs: StackInputs.shape,
    needsInput: ['repo', 'files', 'compose_bundle', 'compose'],
  };
  return new ComposeExtension(header, options, options.agents ?? ownAgents());
}
