import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { WebhookId, WorkspaceId } from '../values/ids.ts';
import { EventType } from './event.ts';

const Types = boundedList(z.array(EventType).min(1).max(64), 64).refine(
  (types) => new Set(types).size === types.length,
  'Name each type once.',
);

const WebhookUrl = z
  .url({ protocol: /^https?$/, error: 'Write a URL such as "https://example.com/hook".' })
  .max(2048);

export const CreateWebhookRequest = z
  .strictObject({
    url: WebhookUrl.describe('Where events are posted. https, unless the server allows more.'),
    types: Types.optional().describe('Which events; all of them when left out.'),
    description: z.string().max(256).default(''),
  })
  .meta({ id: 'CreateWebhookRequest' });
export type CreateWebhookRequest = z.infer<typeof CreateWebhookRequest>;

export const UpdateWebhookRequest = z
  .strictObject({
    url: WebhookUrl.optional(),
    types: Types.nullable().optional().describe('`null` for all.'),
    description: z.string().max(256).optional(),
  })
  .meta({ id: 'UpdateWebhookRequest' });
export type UpdateWebhookRequest = z.infer<typeof UpdateWebhookRequest>;

export const RotateWebhookSecretRequest = z
  .strictObject({
    overlap: DurationSeconds.nullable()
      .default(86_400)
      .describe('How long the old secret signs beside the new one; `null` for not at all.'),
  })
  .meta({ id: 'RotateWebhookSecretRequest' });
export type RotateWebhookSecretRequest = z.infer<typeof RotateWebhookSecretRequest>;

/** The position of a receiver of events, and what stands in its way. */
const sinkProgress = {
  cursor: z.number().int().nullable().describe('The number up to which events were delivered or parked.'),
  lag: z.number().int().describe('Events after the cursor that are for it; counted up to 1000.'),
  parked: z.number().int().describe('Events that were not taken and are tried again.'),
  dead: z.number().int().describe('Events that were given up; they can be replayed.'),
  last_error: z.string().nullable(),
  last_taken_at: z.string().nullable(),
};

export const Webhook = z
  .strictObject({
    webhook_id: WebhookId,
    workspace_id: WorkspaceId,
    url: z.string(),
    types: z.array(EventType).nullable(),
    description: z.string(),
    enabled: z.boolean(),
    disabled_at: z.string().nullable(),
    disabled_reason: z.string().nullable(),
    created_at: z.string(),
    ...sinkProgress,
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof Webhook>;

/** The secret is in this answer and nowhere else, ever. */
export const WebhookWithSecret = Webhook.extend({ secret: z.string() }).meta({ id: 'WebhookWithSecret' });

/** An event that a webhook did not take. */
export const Delivery = z
  .strictObject({
    seq: z.number().int(),
    state: z.enum(['waiting', 'dead']),
    event_id: z.string().nullable().describe('`null` when the event is no longer kept.'),
    type: z.string().nullable(),
    subject: z.string(),
    sandbox_id: z.string().nullable(),
    at: z.string().nullable(),
    tries: z.number().int(),
    next_try_at: z.string().nullable(),
    dead_since: z.string().nullable(),
    last_error: z.string(),
  })
  .meta({ id: 'Delivery' });
export type Delivery = z.infer<typeof Delivery>;

export const PingResult = z
  .strictObject({ taken: z.boolean(), error: z.string().nullable(), duration_ms: z.number() })
  .meta({ id: 'PingResult' });

export const Replay = z.strictObject({ from: z.number().int() }).meta({ id: 'Replay' });

export const EventSinkEntry = z
  .strictObject({
    sink_id: z.string(),
    kind: z.enum(['state-hub', 'fin-hub', 'webhook', 'other']),
    status: z.enum(['active', 'disabled', 'not_configured']),
    endpoint: z.string().nullable(),
    workspace_id: z.string().nullable(),
    ...sinkProgress,
  })
  .meta({ id: 'EventSink' });
export type EventSinkEntry = z.infer<typeof EventSinkEntry>;
