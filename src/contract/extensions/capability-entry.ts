import { z } from 'zod';
import { Price } from '../money/money.ts';
import { CapabilityVector } from './capability.ts';
import { CapabilityStatus } from './federated-capability.ts';

/** The offer of this installation, for a federation of registries to index. */
export const CapabilityEntry = z
  .strictObject({
    id: z.literal('capability.execution.sandbox-provision'),
    version: z.string(),
    name: z.string(),
    status: CapabilityStatus.describe('How far the entry is agreed on with the federation that indexes it.'),
    owner: z.string(),
    domain: z.string(),
    summary: z.string(),
    api: z.strictObject({ version: z.number().int(), openapi: z.string() }),
    operations: z.array(z.string()),
    profiles: z.array(z.strictObject({ id: z.string(), version: z.string(), available: z.boolean() })),
    extensions: z.array(
      z.strictObject({
        id: z.string(),
        title: z.string(),
        capabilities: CapabilityVector,
        price: Price.nullable(),
      }),
    ),
  })
  .meta({ id: 'CapabilityEntry' });
export type CapabilityEntry = z.infer<typeof CapabilityEntry>;

/** The verbs of a sandbox's life, as the API names them (SPEC §4). */
export const OPERATIONS = [
  'create',
  'get',
  'list',
  'exec',
  'files',
  'ports',
  'extend_ttl',
  'pause',
  'resume',
  'snapshot',
  'restore',
  'fork',
  'recreate',
  'destroy',
] as const;

export const CAPABILITY_ID = 'capability.execution.sandbox-provision';
export const CAPABILITY_NAME = 'Establish sandboxes';
export const CAPABILITY_STATUS = 'draft' satisfies CapabilityStatus;
export const CAPABILITY_OWNER = 'sand-boxer';
/** The primary market domain, the same as in `.repo-classification.yaml`. */
export const CAPABILITY_DOMAIN = 'infotech';
export const CAPABILITY_SUMMARY =
  'Provisions an isolated environment from a named profile on the backend that fits best, proves it reachable, meters it, and tears it down for certain.';
