import type { CloudEvent } from '../../contract/events/event.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { findWebhook, webhookPort } from './find-webhook.ts';

export interface Ping {
  readonly taken: boolean;
  readonly error: string | null;
  readonly durationMs: number;
}

/** Sends one signed event of the type `webhook.ping`, once, and says what came of it. Nothing is stored. */
export async function pingWebhook(
  deps: ControlPorts,
  caller: Caller,
  id: string,
  signal: AbortSignal,
): Promise<Ping> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  const webhook = await deps.store.read('webhooks', (tx) => findWebhook(tx, caller, id));
  const startedAt = deps.clock.now();
  const event: CloudEvent = {
    specversion: '1.0',
    id: deps.ids.next('ping'),
    source: `urn:sand-boxer:${deps.owner}`,
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
  return { taken: error === null, error, durationMs: deps.clock.now() - startedAt };
}
