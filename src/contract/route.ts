import { z } from 'zod';
import { IsolationLevel, Requirements } from './capability.ts';
import { ExtensionId, HostId } from './ids.ts';
import { Quote } from './money.ts';

export const RouteStrategy = z.enum(['prefer-self-hosted', 'lowest-cost', 'lowest-latency', 'explicit']);
export type RouteStrategy = z.infer<typeof RouteStrategy>;

const ExtensionList = z.array(ExtensionId).max(64);

/** The selection policy: in a profile, in a request, or both (the request narrows). */
export const RoutePolicy = z
  .strictObject({
    strategy: RouteStrategy.optional(),
    order: ExtensionList.optional(),
    only: ExtensionList.optional(),
    ignore: ExtensionList.optional(),
    allow_fallbacks: z.boolean().optional(),
    fallback: ExtensionList.optional(),
    constraints: Requirements.extend({
      require_isolation: IsolationLevel.optional(),
      max_cost_per_hour: z.number().min(0).max(1_000_000).nullable().optional().describe('US dollars.'),
    })
      .optional()
      .describe('Another spelling of `requires`, with the price ceilings.'),
  })
  .meta({ id: 'RoutePolicy' });
export type RoutePolicy = z.infer<typeof RoutePolicy>;

/** Why a candidate is not used. A fixed vocabulary: clients may switch on it. */
export const ExclusionCode = z.enum([
  'not_pinned',
  'not_in_only',
  'ignored',
  'policy',
  'demo_only',
  'unavailable',
  'unhealthy',
  'isolation',
  'egress',
  'network',
  'credentials',
  'snapshot',
  'fork',
  'pause',
  'pty',
  'ports',
  'watch',
  'ssh',
  'dead_man',
  'persistence',
  'hosting',
  'region',
  'gpu',
  'resources',
  'image',
  'max_ttl',
  'elevated',
  'max_cost_per_hour',
  'no_host',
  'fallbacks_off',
]);
export type ExclusionCode = z.infer<typeof ExclusionCode>;

export const Exclusion = z.strictObject({ code: ExclusionCode, detail: z.string() });
export type Exclusion = z.infer<typeof Exclusion>;

export const RouteCandidate = z
  .strictObject({
    extension: z.string(),
    host: z.string().nullable(),
    rank: z.number().int().nullable().describe('0 is tried first; null is excluded.'),
    excluded_by: z.array(Exclusion),
    score: z.record(z.string(), z.number()).describe('The terms that put it at its rank.'),
    quote: Quote.nullable(),
  })
  .meta({ id: 'RouteCandidate' });
export type RouteCandidate = z.infer<typeof RouteCandidate>;

/** The recorded decision: enough to replay it and to explain it. */
export const RoutePlan = z
  .strictObject({
    version: z.literal(1),
    strategy: RouteStrategy,
    catalogue_version: z.string(),
    price_version: z.string(),
    health_at: z.string(),
    seed: z.string(),
    pinned: z.string().nullable(),
    candidates: z.array(RouteCandidate),
    reason: z.string().describe('One sentence for a person.'),
  })
  .meta({ id: 'RoutePlan' });
export type RoutePlan = z.infer<typeof RoutePlan>;

export const Placement = z.strictObject({
  prefer: z.array(HostId).max(64).default([]),
  fallback: z.array(HostId).max(64).default([]),
});
export type Placement = z.infer<typeof Placement>;

/** One try at one backend, as a caller may see it. */
export const Attempt = z
  .strictObject({
    n: z.number().int(),
    generation: z.number().int(),
    extension: z.string(),
    host: z.string().nullable(),
    state: z.enum(['journalled', 'provisioned', 'won', 'condemned', 'gone']),
    creation: z.enum(['not_created', 'maybe_created', 'created']).nullable(),
    started_at: z.string(),
    ended_at: z.string().nullable(),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
  })
  .meta({ id: 'Attempt' });

export const RouteExplanation = z
  .strictObject({ plan: RoutePlan, attempts: z.array(Attempt) })
  .meta({ id: 'RouteExplanation' });
