import type { EventRecord } from '../../core/events/event.ts';
import type { EventSink } from '../../core/events/event-sink.ts';
import type { ParkedDelivery } from '../../core/ports/store/outbox-store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Lane } from './delivery-lane.ts';
import { lanesOf, runLane } from './delivery-lane.ts';

export type { EventSink } from '../../core/events/event-sink.ts';

export interface DeliveryRound {
  /** More events may be waiting now. */
  readonly more: boolean;
  /** The earliest time at which a parked event is due for another try; `null` when none is parked. */
  readonly retryAt: number | null;
  /** Whether an event was tried and not taken. */
  readonly failed: boolean;
  /** An event was given up. */
  readonly gaveUp: boolean;
  /** Why the receiver will never take an event again; `null` while it may. */
  readonly gone: string | null;
}

const BATCH = 200;
const CONCURRENCY = 8;
/** The most waiting events of a sink before no more are read for it: the rest stays in the log, not in a second list. */
const MOST_WAITING = 1_000;
/** A cursor that passes only events that are not for its sink is written this often. */
const SKIPPED = 500;

interface RoundStart {
  readonly cursor: number;
  readonly waiting: readonly ParkedDelivery[];
  readonly events: readonly EventRecord[];
  /** All events for the sink up to this number are in `events`. */
  readonly seen: number;
}

/** `null` when the sink is gone: without a cursor, nothing is for it. */
async function startOf(deps: ControlPorts, sink: EventSink): Promise<RoundStart | null> {
  const { workspaceId = null, types } = sink.filter ?? {};
  return deps.store.read('outbox', async (tx) => {
    const cursor = await tx.outbox.cursor(sink.id);
    if (cursor === null) return null;
    const after = cursor;
    const waiting = await tx.outbox.waiting(sink.id);
    if (waiting.length >= MOST_WAITING) return { cursor, waiting, events: [], seen: after };
    const events = await tx.events.list({ workspaceId, ...(types && { types }), after, limit: BATCH });
    const seen = events.length === BATCH ? (events.at(-1)?.seq ?? after) : await tx.events.lastSeq();
    return { cursor, waiting, events, seen };
  });
}

/**
 * Runs one round for one sink: parked events that are due, and new events after the cursor. Subjects are served at the same time,
 * the events of one subject one after the other: an event that is not taken is parked, and later events of its subject park
 * behind it. The cursor moves only in the transaction that parks the events it skips.
 */
export async function deliverEvents(
  deps: ControlPorts,
  sink: EventSink,
  signal: AbortSignal,
): Promise<DeliveryRound> {
  const start = await startOf(deps, sink);
  if (start === null) return { more: false, retryAt: null, failed: false, gaveUp: false, gone: null };
  const lanes = lanesOf(
    start.waiting,
    start.events.filter((event) => sink.accepts(event)),
  );
  const queue = lanes.values();
  const run = async () => {
    for (const lane of queue) await runLane(deps, sink, lane, signal);
  };
  await Promise.all(Array.from({ length: Math.min(sink.concurrency ?? CONCURRENCY, lanes.length) }, run));
  const moved = await settle(deps, sink, start, lanes);
  const quiet = start.waiting.length === 0 && lanes.every((lane) => lane.parked.length === 0);
  const waiting = quiet ? [] : await deps.store.read('outbox', (tx) => tx.outbox.waiting(sink.id));
  const gone = lanes.find((lane) => lane.gone !== null)?.gone ?? null;
  return {
    more: start.events.length === BATCH || !moved,
    retryAt: earliest(waiting),
    failed: lanes.some((lane) => lane.failed),
    gaveUp: lanes.some((lane) => lane.gaveUp),
    gone,
  };
}

/** Returns `false` when the cursor was moved meanwhile: by a replay, a deletion or another process. Their cursor stands. */
async function settle(
  deps: ControlPorts,
  sink: EventSink,
  { cursor, events, seen }: RoundStart,
  lanes: readonly Lane[],
): Promise<boolean> {
  // A round that was cut short has reached the event before the first one that was not tried.
  const untried = lanes.flatMap((lane) => lane.fresh.slice(lane.tried)).map((event) => event.seq);
  const reached = Math.min(seen, ...untried.map((seq) => seq - 1));
  const parked = lanes.flatMap((lane) => lane.parked).filter((delivery) => delivery.seq <= reached);
  const taken = lanes.some((lane) => lane.taken > 0);
  const ahead = reached - cursor;
  if (!taken && parked.length === 0 && ahead < (events.length > 0 ? 1 : SKIPPED)) return true;
  return deps.store.transaction('delivered', async (tx) => {
    if ((await tx.outbox.cursor(sink.id)) !== cursor) return false;
    for (const delivery of parked) await tx.outbox.park(delivery);
    if (ahead > 0) await tx.outbox.setCursor({ sinkId: sink.id, cursor: reached });
    if (taken) await tx.outbox.setTaken(sink.id, deps.clock.now());
    return true;
  });
}

/** Returns when the first parked event is due. Within a subject, only the first event has a due time; the others wait for it. */
function earliest(waiting: readonly ParkedDelivery[]): number | null {
  const heads = new Map<string, number>();
  for (const { subject, nextAt } of waiting) if (!heads.has(subject)) heads.set(subject, nextAt);
  return heads.size > 0 ? Math.min(...heads.values()) : null;
}
