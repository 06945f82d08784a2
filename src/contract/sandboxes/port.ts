import { z } from 'zod';
import { DurationSeconds } from '../values/duration.ts';

export const PortRequest = z
  .strictObject({
    port: z.number().int().min(1).max(65_535),
    expires_in: DurationSeconds.optional(),
    public: z.boolean().default(false).describe('Reachable without a token. Only by explicit request.'),
  })
  .meta({ id: 'PortRequest' });

export const PortAccess = z
  .strictObject({
    port: z.number().int(),
    url: z.string(),
    token: z.string().nullable(),
    public: z.boolean(),
    expires_at: z.string(),
  })
  .meta({ id: 'PortAccess' });
