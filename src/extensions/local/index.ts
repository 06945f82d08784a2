import { defineExtension } from '../../core/ports/extension.ts';
import { capabilitiesOn, LocalConfig, optionsOf } from './config.ts';
import { handles } from './handle.ts';

const definition = defineExtension({
  id: 'ext.local',
  title: 'This machine',
  config: LocalConfig.default(LocalConfig.parse({})).describe('Sandboxes on this machine.'),
  bestOn: 'root on Linux with crun, mkfs.ext4 and runsc of November 2023 or newer',
  capabilitiesAtBest: capabilitiesOn({
    controllers: ['cpu', 'memory', 'pids', 'freezer'],
    diskMaker: 'mkfs.ext4',
    levels: { offered: new Map([['gvisor', null]]) },
  }),
  handle: handles,
  async create(config, services) {
    const options = optionsOf(config, services);
    if (options === null) return [];
    const { createLocalExtension } = await import('./create.ts');
    return [createLocalExtension(options)];
  },
});

// Not `export default defineExtension(…)`: tsc leaves the paths of import() unwritten in such an expression.
export default definition;
