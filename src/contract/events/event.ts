import { z } from 'zod';
import { Consumer } from '../sandboxes/sandbox.ts';
import { Actor } from '../values/state.ts';

/** `sandbox.<state>` for every transition; the other types report what happened without one. */
export const EventType = z.enum([
  'sandbox.requested',
  'sandbox.provisioning',
  'sandbox.ready',
  'sandbox.active',
  'sandbox.paused',
  'sandbox.expired',
  'sandbox.failed',
  'sandbox.destroying',
  'sandbox.destroyed',
  'sandbox.stopped',
  'sandbox.extended',
  'sandbox.attempt_failed',
  'sandbox.hedged',
  'sandbox.progress',
  'sandbox.teardown_stuck',
  'sandbox.elevated',
  'sandbox.secret_exposed',
  'sandbox.funds_low',
  'sandbox.billed',
  'snapshot.creating',
  'snapshot.available',
  'snapshot.failed',
  'snapshot.deleted',
  'profile.pushed',
  'credits.granted',
  'credits.expired',
  'budget.alert',
  'orphan.removed',
  'provider_key.refused',
  'webhook.disabled',
]);
export type EventType = z.infer<typeof EventType>;

/** CloudEvents 1.0, JSON format. `sequence` orders the events of one subject; `seq` orders all of them. */
export const CloudEvent = z
  .strictObject({
    specversion: z.literal('1.0'),
    id: z.string(),
    source: z.string(),
    type: z.string(),
    subject: z.string(),
    time: z.string(),
    datacontenttype: z.literal('application/json'),
    sequence: z.string(),
    data: z.strictObject({
      seq: z.number().int(),
      workspace_id: z.string(),
      sandbox_id: z.string().nullable(),
      generation: z.number().int().nullable(),
      state: z.string().nullable(),
      previous_state: z.string().nullable(),
      actor: Actor,
      consumer: Consumer,
      details: z.record(z.string(), z.unknown()),
    }),
  })
  .meta({ id: 'CloudEvent' });
export type CloudEvent = z.infer<typeof CloudEvent>;

export const EventPage = z
  .strictObject({ items: z.array(CloudEvent), next_cursor: z.string().nullable() })
  .meta({ id: 'EventPage' });
