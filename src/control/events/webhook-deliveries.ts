import { SandboxerError } from '../../contract/errors/errors.ts';
import type { EventRecord } from '../../core/events/event.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { ParkedDelivery, ParkedQuery } from '../../core/ports/store/outbox-store.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { findWebhook, webhookPort } from './find-webhook.ts';

export interface DeliveryView {
  readonly delivery: ParkedDelivery;
  /** `null` when it is no longer kept. */
  readonly event: EventRecord | null;
}

interface ListDeliveries extends Omit<ParkedQuery, 'sinkId'> {
  readonly id: string;
}

/** Lists the events that a webhook did not take, in order. */
export async function listDeliveries(
  control: Control,
  caller: Caller,
  { id, ...query }: ListDeliveries,
): Promise<readonly DeliveryView[]> {
  requireScope(caller, 'webhooks');
  return control.store.read('deliveries', async (tx) => {
    await findWebhook(tx, caller, id);
    const views: DeliveryView[] = [];
    for (const delivery of await tx.outbox.parkedPage({ ...query, sinkId: webhookSinkId(id) })) {
      const [event] = await tx.events.list({ workspaceId: null, after: delivery.seq - 1, limit: 1 });
      views.push({ delivery, event: event?.seq === delivery.seq ? event : null });
    }
    return views;
  });
}

interface ReplayDelivery {
  readonly id: string;
  readonly seq: number;
}

/** Tries one delivery again at once, as if for the first time. */
export async function replayDelivery(
  control: Control,
  caller: Caller,
  { id, seq }: ReplayDelivery,
): Promise<DeliveryView> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  const sinkId = webhookSinkId(id);
  const subject = { action: 'replayDelivery', target: `${id}/${seq}` };
  const view = await auditedTransaction(control, caller, { label: 'replay', subject }, async (tx) => {
    await findWebhook(tx, caller, id);
    const [delivery] = await tx.outbox.parkedPage({ sinkId, after: seq - 1, limit: 1 });
    const [event] = await tx.events.list({ workspaceId: null, after: seq - 1, limit: 1 });
    if (delivery?.seq !== seq || event?.seq !== seq) {
      throw new SandboxerError(
        'SBX_NOT_FOUND',
        `The webhook has no delivery ${seq} that could be replayed.`,
        {
          remedy: 'List its deliveries, or replay everything from a number on.',
        },
      );
    }
    const again = { ...delivery, tries: 0, nextAt: control.clock.now(), dead: false };
    await tx.outbox.park(again);
    return { delivery: again, event };
  });
  port.wake(id);
  return view;
}

/** Moves the cursor back to a number: events parked since are delivered in their turn. */
export async function rewindSink(tx: Tx, sinkId: string, from: number): Promise<{ readonly from: number }> {
  const cursor = Math.max(0, Math.min(from - 1, await tx.events.lastSeq()));
  for (const { seq } of await tx.outbox.parked(sinkId)) if (seq > cursor) await tx.outbox.unpark(sinkId, seq);
  await tx.outbox.setCursor({ sinkId, cursor });
  return { from: cursor + 1 };
}

interface ReplayFrom {
  readonly id: string;
  readonly from: number;
}

/** Delivers all kept events from a number on again. Receivers recognise repetitions by the id of the event. */
export async function replayFrom(
  control: Control,
  caller: Caller,
  { id, from }: ReplayFrom,
): Promise<{ readonly from: number }> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  const sinkId = webhookSinkId(id);
  const subject = { action: 'replayWebhook', target: id, details: { from } };
  const result = await auditedTransaction(control, caller, { label: 'replay', subject }, async (tx) => {
    await findWebhook(tx, caller, id);
    return rewindSink(tx, sinkId, from);
  });
  port.wake(id);
  return result;
}
