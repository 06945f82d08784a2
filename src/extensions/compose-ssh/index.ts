import { defineExtension } from '../../core/ports/extension.ts';
import { CAPABILITIES, ComposeConfig, optionsOf } from './config.ts';
import { handles } from './handle.ts';

const definition = defineExtension({
  id: 'ext.compose-ssh',
  title: 'Compose stacks on registered hosts',
  config: ComposeConfig.default(ComposeConfig.parse({})).describe(
    'Compose stacks on registered hosts, over OpenSSH.',
  ),
  bestOn: 'a registered host with an engine and compose',
  capabilitiesAtBest: CAPABILITIES,
  handle: handles,
  async create(config) {
    if (!config.enabled) return [];
    const { createComposeExtension } = await import('./create.ts');
    return [createComposeExtension(optionsOf(config))];
  },
});

// Not `export default defineExtension(…)`: tsc leaves the paths of import() unwritten in such an expression.
export default definition;
