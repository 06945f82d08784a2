import { defineExtension } from '../../core/ports/extension.ts';
import { CAPABILITIES, instancesOf, StubConfig } from './config.ts';
import { handles } from './handle.ts';

const definition = defineExtension({
  id: 'ext.saas-stub',
  title: 'Stub of a metered service',
  config: StubConfig.default({}).describe(
    'Instances of the stub for tests and demos, by name; `default` is ext.saas-stub itself. It isolates nothing.',
  ),
  bestOn: null,
  capabilitiesAtBest: CAPABILITIES,
  handle: handles,
  async create(config, services) {
    const instances = instancesOf(config, services);
    if (instances.length === 0) return [];
    const { createConfiguredStub } = await import('./create.ts');
    return instances.map(createConfiguredStub);
  },
});

// Not `export default defineExtension(…)`: tsc leaves the paths of import() unwritten in such an expression.
export default definition;
