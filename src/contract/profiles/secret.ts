import { z } from 'zod';
import { CredentialDelivery } from '../extensions/capability.ts';

/** A reference to a secret, never its value. */
export const SecretRef = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'A secret is named like a variable: letters, digits, "_".'),
    provider: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,31}$/)
      .default('env'),
    key: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Key of the secret at the provider; the name when left out.'),
    delivery: CredentialDelivery.default('broker').describe(
      '`file` and `env` expose the value inside: only a profile may say so.',
    ),
  })
  .meta({ id: 'SecretRef' });
export type SecretRef = z.infer<typeof SecretRef>;

/** The reference to a secret in a request: a name declared by the profile, `provider:key`, or a whole reference. */
export const RequestedSecretRef = z.union([
  z
    .string()
    .max(300)
    .regex(
      /^(?:[a-z][a-z0-9-]{0,31}:)?[A-Za-z0-9_./-]{1,256}$/,
      'Name a declared secret, or "provider:key".',
    ),
  SecretRef,
]);
export type RequestedSecretRef = z.infer<typeof RequestedSecretRef>;
