/** Reads `deploy` of a service: limits and the number of containers. Fields for a swarm are left out. */
import { numberOf } from '../yaml/scalars.ts';
import type { Shape } from './shape.ts';
import { ignored, numberIn, record } from './shape.ts';
import { bytes, integer } from './words.ts';

const cpus = numberIn(numberOf, 0, 10_000, '0.5');

const devices: Shape<never> = {
  read(value, at) {
    if (Array.isArray(value) && value.length === 0) return undefined;
    return at.boundary('It would reach devices of the host.', 'Use a profile with resources.gpu.');
  },
  examples: [[{ capabilities: ['gpu'] }]],
};

export const deploy = record({
  endpoint_mode: ignored('vip'),
  labels: ignored({ tier: 'front' }),
  mode: ignored('replicated'),
  placement: ignored({ constraints: ['node.role==worker'] }),
  replicas: integer(0, 1000, 2),
  resources: record({
    limits: record({ cpus, memory: bytes, pids: integer(0, 2 ** 22, 100), devices }),
    reservations: record({ cpus: ignored('0.25'), memory: bytes, devices, generic_resources: ignored([]) }),
  }),
  restart_policy: ignored({ condition: 'on-failure' }),
  rollback_config: ignored({ parallelism: 1 }),
  update_config: ignored({ parallelism: 1 }),
});
