import { z } from 'zod';
import { ErrorIssue } from '../errors/errors.ts';
import { BackendStanding } from '../extensions/backend-standing.ts';
import { IsolationLevel, Requirements } from '../extensions/capability.ts';
import { MicroUsd, Quote } from '../money/money.ts';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { ExtensionId, HostId } from '../values/ids.ts';

export const RouteStrategy = z.enum(['prefer-self-hosted', 'lowest-cost', 'lowest-latency', 'explicit']);
export type RouteStrategy = z.infer<typeof RouteStrategy>;

const ExtensionList = boundedList(z.array(ExtensionId).max(64), 64);

const Usd = z.number().min(0).max(1_000_000);

/** Hard ceilings on list prices, in US dollars. */
export const MaxPrice = z
  .strictObject({
    vcpu_hour: Usd.optional().describe(
      'For each vCPU that is asked for, region included. A base rate and the price of a size that is sold whole count in full.',
    ),
    gib_hour: Usd.optional().describe('For each GiB of memory that is asked for, in the same way.'),
    gpu_hour: Usd.optional().describe('For the GPU that is asked for, in the same way.'),
    create: Usd.optional(),
  })
  .meta({ id: 'MaxPrice' });
export type MaxPrice = z.infer<typeof MaxPrice>;

/** The selection policy: in a profile, in a request, or both (the request narrows). */
export const RoutePolicy = z
  .strictObject({
    strategy: RouteStrategy.optional(),
    order: ExtensionList.optional(),
    only: ExtensionList.optional(),
    ignore: ExtensionList.optional(),
    allow_fallbacks: z.boolean().optional(),
    fallback: ExtensionList.optional(),
    sort: z
      .enum(['price', 'latency'])
      .optional()
      .describe(
        'Ranks by this alone, in place of the strategy. What a pin or `order` says still comes first.',
      ),
    host: HostId.optional().describe('Only on this host.'),
    value_of_time: Usd.optional().describe('Value of an hour of waiting to you, in US dollars.'),
    preferred_max_tti: z
      .number()
      .positive()
      .max(86_400)
      .optional()
      .describe('Seconds to a usable sandbox. Slower backends come last; none is excluded.'),
    hedge: z
      .enum(['off', 'auto'])
      .optional()
      .describe(
        '`auto` starts a second attempt on the next backend when the first is slow and that is expected to save more than it costs. The first to be ready is yours, the other is removed, and you pay for one. `off` where nothing is said.',
      ),
    hedge_after: z
      .number()
      .positive()
      .max(3600)
      .optional()
      .describe('With `hedge: auto`: after so many seconds, in place of what was learned of the backend.'),
    affinity_key: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('Requests with the same key go to the same backend while it is about as good as the best.'),
    expect: z
      .strictObject({
        duration: DurationSeconds.optional().describe('How long it will probably live.'),
        cpu_utilisation: z
          .number()
          .min(0)
          .max(1)
          .optional()
          .describe('The share of its processors kept busy.'),
      })
      .optional()
      .describe(
        'Known figures of the use to come. The rest is learned from earlier sandboxes of the profile.',
      ),
    constraints: Requirements.extend({
      require_isolation: IsolationLevel.optional(),
      max_cost_per_hour: Usd.nullable().optional().describe('US dollars.'),
      max_total_cost: Usd.nullable().optional().describe('US dollars, for the whole ttl.'),
      max_price: MaxPrice.optional(),
    })
      .optional()
      .describe('Another spelling of `requires`, with the price ceilings.'),
  })
  .meta({ id: 'RoutePolicy' });
export type RoutePolicy = z.infer<typeof RoutePolicy>;

/** The most that a workspace allows: a request can only narrow it. */
export const RouteCeiling = RoutePolicy.pick({ only: true, ignore: true, constraints: true })
  .extend({
    hedge: z.enum(['off']).optional().describe('Forbids second attempts, whatever a request says.'),
    git_hosts: boundedList(z.array(z.string().min(1).max(300)).max(256), 256)
      .optional()
      .describe('Hosts that repositories may be fetched from: no more than the server allows anyway.'),
  })
  .meta({ id: 'RouteCeiling' });
export type RouteCeiling = z.infer<typeof RouteCeiling>;

/** Why a candidate is not used. A fixed vocabulary: clients may switch on it. */
export const ExclusionCode = z.enum([
  'not_pinned',
  'not_in_only',
  'ignored',
  'policy',
  'demo_only',
  'unavailable',
  'unhealthy',
  'breaker_open',
  'key_refused',
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
  'data_residency',
  'gpu',
  'resources',
  'image',
  'inputs',
  'volumes',
  'max_ttl',
  'workspace',
  'mounts',
  'elevated',
  'max_cost_per_hour',
  'max_total_cost',
  'max_price',
  'no_host',
  'fallbacks_off',
  'not_quoted',
]);
export type ExclusionCode = z.infer<typeof ExclusionCode>;

export const Exclusion = z.strictObject({
  code: ExclusionCode,
  detail: z.string(),
  retry_after_seconds: z
    .number()
    .int()
    .optional()
    .describe('The reason passes by itself: the same request may succeed after this time.'),
});
export type Exclusion = z.infer<typeof Exclusion>;

/** A host that the backend could have been used on. */
export const ExcludedHost = Exclusion.extend({ host: z.string() }).meta({ id: 'ExcludedHost' });
export type ExcludedHost = z.infer<typeof ExcludedHost>;

export const RouteCandidate = z
  .strictObject({
    extension: z.string(),
    host: z.string().nullable(),
    placement: z.string().optional().describe('Why that host.'),
    other_hosts: z.array(z.string()).optional().describe('Tried next, should it not be reachable.'),
    excluded_hosts: z.array(ExcludedHost).optional().describe('Hosts that were left alone, and why.'),
    rank: z.number().int().nullable().describe('0 is tried first; null is excluded.'),
    excluded_by: z.array(Exclusion),
    score: z.record(z.string(), z.number()).describe('The terms that put it at its rank.'),
    quote: Quote.nullable(),
    provider_key: z
      .strictObject({ provider_key_id: z.string(), scope: z.enum(['workspace', 'platform']) })
      .optional()
      .describe(
        'The key it would be made with. What runs under a key of your own is billed by the vendor alone.',
      ),
    standing: BackendStanding.optional(),
  })
  .meta({ id: 'RouteCandidate' });
export type RouteCandidate = z.infer<typeof RouteCandidate>;

/** The expected use of the sandbox, with its source. */
export const ExpectedUse = z
  .strictObject({
    seconds: z.number().describe('How long it will probably live.'),
    seconds_from: z.enum(['request', 'learned', 'ttl']),
    cpu_utilisation: z.number().describe('The share of its processors kept busy, 0 to 1.'),
    cpu_from: z.enum(['request', 'learned', 'assumed']),
    memory_utilisation: z.number().optional().describe('The share of its memory ever occupied, 0 to 1.'),
    memory_from: z.enum(['learned', 'assumed']).optional(),
    samples: z
      .number()
      .int()
      .describe('Finished sandboxes of the profile in the workspace that were learned from; 0: too few.'),
    cpu_samples: z
      .number()
      .int()
      .optional()
      .describe('Those of them whose backend counts what their programs take; 0: too few.'),
  })
  .meta({ id: 'ExpectedUse' });
export type ExpectedUse = z.infer<typeof ExpectedUse>;

/** Whether a second attempt is started next to a slow first, and why. */
export const RouteHedge = z
  .strictObject({
    extension: z.string().nullable().describe('Where the second attempt would go.'),
    host: z.string().nullable(),
    after_ms: z.number().int().nullable().describe('When it starts; null: it does not.'),
    saves_ms: z.number().int().describe('The waiting that it is expected to save, once it starts.'),
    worth_micro_usd: MicroUsd.describe('Cost of that wait, by the value of time.'),
    cost_micro_usd: MicroUsd.describe('The most that the attempt which loses costs. It is not charged.'),
    reason: z.string(),
  })
  .meta({ id: 'RouteHedge' });
export type RouteHedge = z.infer<typeof RouteHedge>;

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
    panic: z.boolean().optional().describe('Every backend that fits looked broken, so that was ignored.'),
    candidates: z.array(RouteCandidate),
    hedge: RouteHedge.optional(),
    expected: ExpectedUse.optional(),
    reason: z.string().describe('Explanation in one sentence.'),
  })
  .meta({ id: 'RoutePlan' });
export type RoutePlan = z.infer<typeof RoutePlan>;

export const Placement = z.strictObject({
  prefer: boundedList(z.array(HostId).max(64), 64).default([]),
  fallback: boundedList(z.array(HostId).max(64), 64).default([]),
  strategy: z
    .enum(['spread', 'pack'])
    .optional()
    .describe('The least used host (default), or the fullest that has room.'),
});
export type Placement = z.infer<typeof Placement>;

/** A try at one backend, as a caller may see it. */
export const Attempt = z
  .strictObject({
    n: z.number().int(),
    generation: z.number().int(),
    extension: z.string(),
    host: z.string().nullable(),
    state: z.enum(['journalled', 'provisioned', 'won', 'condemned', 'gone']),
    creation: z.enum(['not_created', 'maybe_created', 'created']).nullable(),
    provider_key_id: z.string().nullable().describe('The key of the vendor that it was made with.'),
    started_at: z.string(),
    ended_at: z.string().nullable(),
    error: z
      .strictObject({
        code: z.string(),
        detail: z.string(),
        remedy: z.string().optional(),
        field: z.string().optional(),
        issues: z.array(ErrorIssue).optional(),
      })
      .nullable(),
    hedges: z.number().int().nullable().describe('The slow attempt that it was started next to.'),
    outrun_by: z.number().int().nullable().describe('The attempt that was ready before it.'),
  })
  .meta({ id: 'Attempt' });

export const RouteExplanation = z
  .strictObject({ plan: RoutePlan, attempts: z.array(Attempt) })
  .meta({ id: 'RouteExplanation' });
