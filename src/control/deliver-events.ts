import type { EventRecord } from '../core/event.ts';
import type { ParkedDelivery } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';
import { backoffMs } from './settings.ts';

/** Somebody who is told of events: at least once each, in order per subject. */
export interface EventSink {
  readonly id: string;
  /** Tries after which an event is set aside as dead; `null` never gives up. */
  readonly maxTries: number | null;
  accepts(event: EventRecord): boolean;
  /** Rejects when it was not taken; it is then sent again. */
  deliver(event: EventRecord, signal: AbortSignal): Promise<void>;
}

export interface DeliveryRound {
  /** More events may be waiting now. */
  readonly more: boolean;
  /** The earliest time at which something parked wants another try; `null` when nothing is parked. */
  readonly retryAt: number | null;
}

const BATCH = 200;

/**
 * One round for one sink: first what is parked and due, then new events after the cursor. An event that is not taken
 * is parked, and later ones of the same subject park behind it, so that no subject holds up another. The cursor moves
 * only together with what it skipped being parked.
 */
export async function deliverEvents(deps: ControlDeps, sink: EventSink, signal: AbortSignal): Promise<DeliveryRound> {
  const state = await deps.store.read('outbox', async (tx) => {
    const cursor = (await tx.outbox.cursor(sink.id)) ?? 0;
    const parked = await tx.outbox.parked(sink.id);
    const events = await tx.events.list({ workspaceId: null, after: cursor, limit: BATCH });
    return { cursor, parked, events };
  });
  const blocked = new Set<string>();
  await retryParked(deps, sink, state.parked, blocked, signal);
  const failed = await deliverNew(deps, sink, state.events, blocked, signal);
  const last = state.events.at(-1)?.seq ?? state.cursor;
  const remaining = await deps.store.transaction('delivered', async (tx) => {
    for (const delivery of failed) await tx.outbox.park(delivery);
    if (last > state.cursor) await tx.outbox.setCursor({ sinkId: sink.id, cursor: last });
    return tx.outbox.parked(sink.id);
  });
  return { more: state.events.length === BATCH, retryAt: nextRetryAt(remaining) };
}

/** Of each subject only the first can be tried: what is behind it would wake us for nothing. */
function nextRetryAt(parked: readonly ParkedDelivery[]): number | null {
  const firsts = new Map<string, ParkedDelivery>();
  for (const delivery of parked) {
    const first = firsts.get(delivery.subject);
    if (!delivery.dead && (!first || delivery.seq < first.seq)) firsts.set(delivery.subject, delivery);
  }
  let next: number | null = null;
  for (const { nextAt } of firsts.values()) next = next === null ? nextAt : Math.min(next, nextAt);
  return next;
}

function parkedFor(deps: ControlDeps, sink: EventSink, event: EventRecord, tries: number, error: unknown): ParkedDelivery {
  const message = error instanceof Error ? error.message : String(error);
  return {
    sinkId: sink.id,
    seq: event.seq,
    subject: event.subject,
    tries,
    nextAt: deps.clock.now() + backoffMs(deps.settings, tries, deps.ids.random()),
    lastError: message.slice(0, 500),
    dead: sink.maxTries !== null && tries >= sink.maxTries,
  };
}

async function retryParked(
  deps: ControlDeps,
  sink: EventSink,
  parked: readonly ParkedDelivery[],
  blocked: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const delivery of [...parked].sort((a, b) => a.seq - b.seq)) {
    if (delivery.dead || blocked.has(delivery.subject)) continue;
    if (delivery.nextAt > deps.clock.now()) {
      blocked.add(delivery.subject);
      continue;
    }
    const [event] = await deps.store.read('parked', (tx) =>
      tx.events.list({ workspaceId: null, after: delivery.seq - 1, limit: 1 }),
    );
    const settled = await attempt(deps, sink, event, delivery, signal);
    await deps.store.transaction('redelivered', async (tx) => {
      await tx.outbox.unpark(sink.id, delivery.seq);
      if (settled) await tx.outbox.park(settled);
    });
    if (settled && !settled.dead) blocked.add(delivery.subject);
  }
}

/** `null` when it was taken, or is no longer kept. */
async function attempt(
  deps: ControlDeps,
  sink: EventSink,
  event: EventRecord | undefined,
  delivery: ParkedDelivery,
  signal: AbortSignal,
): Promise<ParkedDelivery | null> {
  if (event?.seq !== delivery.seq) return null;
  try {
    await sink.deliver(event, signal);
    return null;
  } catch (error) {
    return parkedFor(deps, sink, event, delivery.tries + 1, error);
  }
}

async function deliverNew(
  deps: ControlDeps,
  sink: EventSink,
  events: readonly EventRecord[],
  blocked: Set<string>,
  signal: AbortSignal,
): Promise<ParkedDelivery[]> {
  const failed: ParkedDelivery[] = [];
  for (const event of events) {
    if (!sink.accepts(event)) continue;
    if (blocked.has(event.subject)) {
      failed.push({ ...parkedFor(deps, sink, event, 0, 'waits behind an earlier event'), dead: false });
      continue;
    }
    try {
      await sink.deliver(event, signal);
    } catch (error) {
      failed.push(parkedFor(deps, sink, event, 1, error));
      blocked.add(event.subject);
    }
  }
  return failed;
}
