import { z } from 'zod';
import { ExtensionId, ProviderKeyId } from '../values/ids.ts';

const ProviderKeyScope = z
  .enum(['workspace', 'platform'])
  .describe(
    '`workspace`: your own account at the vendor, which bills you; nothing is charged here. `platform`: the account of the operator of this server; its use is charged.',
  );

export const SetProviderKeyRequest = z
  .strictObject({
    extension: ExtensionId,
    scope: ProviderKeyScope.default('workspace'),
    secret: z
      .string()
      .min(8)
      .max(4096)
      .regex(/^[\x21-\x7e]+$/, 'A key has no spaces and no control characters.')
      .describe('Tried at the vendor, sealed, and never shown again.'),
    label: z.string().max(120).default(''),
  })
  .meta({ id: 'SetProviderKeyRequest' });
export type SetProviderKeyRequest = z.infer<typeof SetProviderKeyRequest>;

export const ProviderKey = z
  .strictObject({
    provider_key_id: ProviderKeyId,
    extension: z.string(),
    scope: z.enum(['workspace', 'platform']),
    workspace_id: z.string().nullable().describe('`null` for a key of the platform.'),
    label: z.string(),
    hint: z.string().describe('The last four characters.'),
    state: z
      .enum(['active', 'refused', 'disabled'])
      .describe(
        '`refused`: the vendor refused it, so nothing is routed to it until it is tested or replaced.',
      ),
    created_at: z.string(),
    checked_at: z.string().describe('When the vendor last took it.'),
    refused_at: z.string().nullable(),
  })
  .meta({ id: 'ProviderKey' });
export type ProviderKey = z.infer<typeof ProviderKey>;

export const ResealReport = z
  .strictObject({
    resealed: z.number().int().describe('Stored secrets that are under the current master key now.'),
    unchanged: z.number().int().describe('Those that were already.'),
  })
  .meta({ id: 'ResealReport' });
