import type { ConfiguredSink } from '../../core/events/event-sink.ts';
import type { WebhookRecord } from '../../core/events/webhook.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { SinkProgress } from './sink-progress.ts';
import { sinkProgress, webhookProgress } from './sink-progress.ts';

export type SinkView = SinkProgress &
  ({ readonly configured: ConfiguredSink } | { readonly webhook: WebhookRecord });

/** Lists all receivers of events, over all workspaces. */
export async function listSinks(control: Control, caller: Caller): Promise<readonly SinkView[]> {
  requireScope(caller, 'server');
  return control.store.read('sinks', async (tx) => {
    const views: SinkView[] = [];
    for (const configured of control.sinks ?? []) {
      views.push({ configured, ...(await sinkProgress(tx, configured.id, { workspaceId: null })) });
    }
    for (const webhook of await tx.webhooks.list(null)) {
      views.push({ webhook, ...(await webhookProgress(tx, webhook)) });
    }
    return views;
  });
}

/**
 * Activates the configured receivers at start; a new one gets the events from now on. A receiver that is no longer configured
 * keeps its cursor, but no events: they are deleted when their time is over.
 */
export async function alignSinks(deps: ControlPorts, configured: readonly string[]): Promise<void> {
  await deps.store.transaction('align-sinks', async (tx) => {
    const lastSeq = await tx.events.lastSeq();
    for (const sinkId of configured) {
      if ((await tx.outbox.sink(sinkId)) === null) await tx.outbox.setCursor({ sinkId, cursor: lastSeq });
    }
    for (const { sinkId, active } of await tx.outbox.sinks()) {
      const wanted = configured.includes(sinkId);
      if (!sinkId.startsWith(webhookSinkId('')) && active !== wanted)
        await tx.outbox.setActive(sinkId, wanted);
    }
  });
}
