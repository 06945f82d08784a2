import { z } from 'zod';
import type { BuiltinsConfig } from '../../extensions/builtins.ts';

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
});

export function composeOptions(config: z.infer<typeof ComposeConfig>): BuiltinsConfig['compose_ssh'] {
  const { enabled, directory, address_pool } = config;
  if (!enabled) return null;
  return {
    ...(directory === undefined ? {} : { directory }),
    ...(address_pool === undefined ? {} : { addressPool: address_pool }),
  };
}
