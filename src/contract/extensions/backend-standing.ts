import { z } from 'zod';

/** The state of a backend as it was known when the decision was made. */
export const BackendStanding = z
  .strictObject({
    probe: z.enum(['healthy', 'unhealthy', 'undetected', 'unknown']),
    breaker: z.enum(['closed', 'open', 'half_open']),
    key_refused: z.boolean().describe('The backend refused our credentials lately.'),
    wait_ms: z.number().int().describe('Expected time to a ready sandbox, at the load of that moment.'),
    measured: z.boolean().describe('From our own attempts; otherwise what the registry says.'),
    success: z.number().describe('The share of creates that succeed, 0 to 1.'),
    samples: z.number().int(),
    in_flight: z.number().int(),
    p50_ms: z.number().int().optional().describe('Half were ready by then; known from twenty attempts on.'),
    p95_ms: z.number().int().optional(),
    tail_ms: z.number().int().optional().describe('How much longer the slowest twentieth took, on average.'),
  })
  .meta({ id: 'BackendStanding' });
export type BackendStanding = z.infer<typeof BackendStanding>;
