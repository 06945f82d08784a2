import { z } from 'zod';
import type { BuiltinsConfig } from '../../extensions/builtins.ts';
import { ENGINE_WISHES } from '../../extensions/compose-ssh/remote/engine-record.ts';

export const ComposeConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether stacks are placed on registered hosts.'),
  directory: z
    .string()
    .max(1024)
    .optional()
    .describe(
      'Where stacks live on a host, absolute or below the login directory. Default: .sandboxer/compose.',
    ),
  address_pool: z
    .string()
    .regex(/^\d+\.\d+\.\d+\.\d+\/\d+$/)
    .optional()
    .describe(
      'The addresses that networks of stacks are cut from; free on every host. Default: 10.213.0.0/16.',
    ),
  engine: z
    .enum(ENGINE_WISHES)
    .default('auto')
    .describe(
      'Which engine of a host new stacks run on. auto: a rootless engine of the ssh user that was proven by a started container and enforces the limits of the stack, otherwise the one that docker reaches; rootless: no other than a proven rootless one; rootful: what docker reaches.',
    ),
});

export function composeOptions(config: z.infer<typeof ComposeConfig>): BuiltinsConfig['compose_ssh'] {
  const { enabled, directory, address_pool, engine } = config;
  if (!enabled) return null;
  return {
    engine,
    ...(directory === undefined ? {} : { directory }),
    ...(address_pool === undefined ? {} : { addressPool: address_pool }),
  };
}
