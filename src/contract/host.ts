import { z } from 'zod';
import { IsolationLevel } from './capability.ts';
import { HostId } from './ids.ts';
import { Labels } from './json.ts';
import { MicroUsd } from './money.ts';

/** A placement target. `production` hosts are never one: they can be registered only to be refused. */
export const Host = z
  .strictObject({
    id: HostId,
    class: z.enum(['sandbox', 'production']),
    address: z
      .string()
      .max(255)
      .describe('What the transport understands: an ssh destination, a socket path.'),
    extensions: z.array(z.string()).max(32),
    labels: Labels,
    isolation: z.array(IsolationLevel),
    capacity: z.strictObject({
      sandboxes: z.number().int().nullable(),
      cpu: z.number().nullable(),
      memory_mb: z.number().int().nullable(),
    }),
    cost_micro_usd_per_hour: MicroUsd.nullable(),
    state: z.enum(['active', 'draining', 'removed']),
    health: z.enum(['unknown', 'healthy', 'unhealthy']),
  })
  .meta({ id: 'Host' });
export type Host = z.infer<typeof Host>;
