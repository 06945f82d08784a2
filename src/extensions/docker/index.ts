import { defineExtension } from '../../core/ports/extension.ts';
import { capabilitiesOf, DockerConfig, optionsOf } from './config.ts';
import { handles } from './handle.ts';

const definition = defineExtension({
  id: 'ext.docker',
  title: 'Docker',
  config: DockerConfig.default(DockerConfig.parse({})).describe('Containers on a Docker or Podman engine.'),
  bestOn: 'an engine with all cgroup controllers',
  capabilitiesAtBest: capabilitiesOf(null, { network: null, defaultImage: null }, { offered: new Map() }),
  handle: handles,
  async create(config, services) {
    const options = optionsOf(config, services);
    if (options === null) return [];
    const { createDockerExtension } = await import('./create.ts');
    return [await createDockerExtension(options)];
  },
});

// Not `export default defineExtension(…)`: tsc leaves the paths of import() unwritten in such an expression.
export default definition;
