import type { ExtensionHeader } from '../../core/ports/extension.ts';
import { remediesOf } from '../shared/isolation/tried-levels.ts';
import { capabilitiesOn } from './config.ts';
import { LocalExtension } from './extension.ts';
import { findHostFacts } from './host/host-facts.ts';
import type { LocalOptions } from './host/options.ts';
import definition from './index.ts';

/**
 * Makes the extension for sandboxes on this machine, in milliseconds: an OCI runtime isolates them, the agent inside is the
 * channel.
 */
export function createLocalExtension(options: LocalOptions): LocalExtension {
  const facts = findHostFacts(options);
  const header: ExtensionHeader = {
    id: definition.id,
    title: definition.title,
    handleVersion: definition.handle.version,
    capabilities: capabilitiesOn(facts),
    remedies: remediesOf(facts.levels),
    price: null,
    provisionTimeoutSeconds: 60,
    endsWithMachine: true,
    shipsInputs: 'read-only',
  };
  return new LocalExtension(header, options, facts);
}
