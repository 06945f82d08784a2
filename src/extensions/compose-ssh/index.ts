import { existsSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import type { ExtensionHeader } from '../../core/extension.ts';
import type { AgentBinaries } from '../shared/ssh/upload-agent.ts';
import type { ComposeOptions } from './config.ts';
import { CAPABILITIES } from './config.ts';
import { ComposeExtension } from './extension.ts';
import { BACKEND } from './failure.ts';
import { HANDLE_VERSION } from './handle.ts';

const MACHINES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

function ownAgent(): AgentBinaries {
  const path = join(import.meta.dirname, '..', '..', '..', 'agent', 'build', 'sandboxer-agent');
  const machine = MACHINES[arch()];
  return machine !== undefined && existsSync(path) ? { [machine]: path } : {};
}

/** A repository’s compose stack on a registered host, over OpenSSH. */
export function createComposeExtension(options: ComposeOptions = {}): ComposeExtension {
  const header: ExtensionHeader = {
    id: BACKEND,
    title: 'Compose stacks on registered hosts',
    runsOn: 'hosts',
    handleVersion: HANDLE_VERSION,
    capabilities: CAPABILITIES,
    price: null,
    provisionTimeoutSeconds: 900,
    shipsInputs: true,
    needsInput: ['repo', 'files', 'compose_bundle', 'compose'],
  };
  return new ComposeExtension(header, options, options.agents ?? ownAgent());
}
