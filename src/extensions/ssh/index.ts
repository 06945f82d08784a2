import { defineExtension } from '../../core/ports/extension.ts';
import { CAPABILITIES, SshConfig } from './config.ts';
import { handles } from './handle.ts';

const definition = defineExtension({
  id: 'ext.ssh',
  title: 'A directory on a host',
  config: SshConfig.default(SshConfig.parse({})).describe(
    'A plain directory and user on registered hosts: it isolates nothing.',
  ),
  bestOn: 'a registered host',
  capabilitiesAtBest: CAPABILITIES,
  handle: handles,
  async create({ enabled }) {
    if (!enabled) return [];
    const [{ createSshExtension }, { ownAgents }] = await Promise.all([
      import('./create.ts'),
      import('../shared/own-programs.ts'),
    ]);
    return [createSshExtension({ agents: ownAgents() })];
  },
});

// Not `export default defineExtension(…)`: tsc leaves the paths of import() unwritten in such an expression.
export default definition;
