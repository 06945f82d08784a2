import { z } from 'zod';
import { Price } from '../money/money.ts';
import { BackendStanding } from './backend-standing.ts';
import { CapabilityVector } from './capability.ts';

export const HealthCheck = z.strictObject({
  name: z.string(),
  ok: z.boolean(),
  detail: z.string(),
  fix: z.string().nullable(),
});
export const ExtensionHealth = z
  .strictObject({
    status: z.enum(['healthy', 'unhealthy', 'undetected', 'unknown']),
    detail: z.string(),
    checked_at: z.string().nullable(),
    checks: z.array(HealthCheck),
  })
  .meta({ id: 'ExtensionHealth' });
export type ExtensionHealth = z.infer<typeof ExtensionHealth>;

/** A backend as the API shows it. */
export const ExtensionEntry = z
  .strictObject({
    id: z.string(),
    title: z.string(),
    enabled: z.boolean(),
    handle_version: z.number().int(),
    capabilities: CapabilityVector,
    price: Price.nullable(),
    health: ExtensionHealth,
    standing: BackendStanding.describe('Health of the backend by our own attempts.'),
  })
  .meta({ id: 'ExtensionEntry' });
