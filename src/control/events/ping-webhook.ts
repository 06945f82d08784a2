import type { CloudEvent } from '../../contract/events/event.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { findWebhook, webhookPort } from './find-webhook.ts';

export interface Ping {
  readonly taken: boolean;
  readonly error: string | null;
  readonly durationMs: number;
}

interface PingWebhook {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Sends one signed event of the type `webhook.ping`, once, and returns the result. Nothing is stored. */
export async function pingWebhook(
  control: Control,
  caller: Caller,
  { id, signal }: PingWebhook,
): Promise<Ping> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  const webhook = await control.store.read('webhooks', (tx) => findWebhook(tx, caller, id));
  const startedAt = control.clock.now();
  const event: CloudEvent = {
    specversion: '1.0',
    id: control.ids.next('ping'),
    source: `urn:sand-boxer:${control.owner}`,
    type: 'webhook.ping',
    subject: `webhook:${id}`,
    time: isoTime(startedAt),
    datacontenttype: 'application/json',
    sequence: '0',
    data: {
      seq: 0,
      workspace_id: webhook.workspaceId,
      sandbox_id: null,
      generation: null,
      state: null,
      previous_state: null,
      actor: caller.actor,
      consumer: {},
      details: { webhook_id: id },
    },
  };
  const error = await port.send(webhook, event, signal).then(
    () => null,
    (reason: unknown) => (reason instanceof Error ? reason.message : String(reason)),
  );
  return { taken: error === null, error, durationMs: control.clock.now() - startedAt };
}
