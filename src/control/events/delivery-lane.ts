import type { EventRecord } from '../../core/events/event.ts';
import type { EventSink } from '../../core/events/event-sink.ts';
import { SinkGone } from '../../core/events/event-sink.ts';
import type { ParkedDelivery } from '../../core/ports/store/outbox-store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { backoffMs } from '../ports/settings.ts';

/** The events of one subject for a sink, in order: first the parked ones, then the new ones. */
export interface Lane {
  readonly waiting: ParkedDelivery[];
  readonly fresh: EventRecord[];
  /** How many of `fresh` were taken or parked. */
  tried: number;
  taken: number;
  /** An earlier event was not taken: what follows waits behind it. */
  blocked: boolean;
  /** Whether an event was tried and not taken. */
  failed: boolean;
  gaveUp: boolean;
  gone: string | null;
  readonly parked: ParkedDelivery[];
}

export function lanesOf(waiting: readonly ParkedDelivery[], events: readonly EventRecord[]): readonly Lane[] {
  const lanes = new Map<string, Lane>();
  const laneOf = (subject: string) => {
    let lane = lanes.get(subject);
    if (!lane) {
      lane = {
        waiting: [],
        fresh: [],
        tried: 0,
        taken: 0,
        blocked: false,
        failed: false,
        gaveUp: false,
        gone: null,
        parked: [],
      };
      lanes.set(subject, lane);
    }
    return lane;
  };
  for (const delivery of waiting) laneOf(delivery.subject).waiting.push(delivery);
  for (const event of events) laneOf(event.subject).fresh.push(event);
  return [...lanes.values()];
}

/** Delivers one subject's events. After an abort it stops between two events; no event counts as tried that was not. */
export async function runLane(
  deps: ControlPorts,
  sink: EventSink,
  lane: Lane,
  signal: AbortSignal,
): Promise<void> {
  await retryWaiting(deps, sink, lane, signal);
  for (const event of lane.fresh) {
    if (signal.aborted) return;
    const failure = lane.blocked
      ? waitsBehind(deps, sink, event)
      : await attempt(deps, sink, { lane, event, tries: 0, signal });
    if (failure === 'aborted') return;
    lane.tried += 1;
    if (failure) lane.parked.push(failure);
  }
}

async function retryWaiting(
  deps: ControlPorts,
  sink: EventSink,
  lane: Lane,
  signal: AbortSignal,
): Promise<void> {
  for (const delivery of lane.waiting) {
    if (signal.aborted) return;
    if (delivery.nextAt > deps.clock.now()) {
      lane.blocked = true;
      return;
    }
    const [event] = await deps.store.read('parked', (tx) =>
      tx.events.list({ workspaceId: null, after: delivery.seq - 1, limit: 1 }),
    );
    // An event that is no longer kept cannot be delivered any more.
    const failure =
      event?.seq === delivery.seq
        ? await attempt(deps, sink, { lane, event, tries: delivery.tries, signal })
        : null;
    if (failure === 'aborted') return;
    await deps.store.transaction('redelivered', async (tx) => {
      if ((await tx.outbox.cursor(sink.id)) === null) return;
      await tx.outbox.unpark(sink.id, delivery.seq);
      if (failure) await tx.outbox.park(failure);
      else await tx.outbox.setTaken(sink.id, deps.clock.now());
    });
    if (lane.blocked) return;
  }
}

interface DeliveryTry {
  readonly lane: Lane;
  readonly event: EventRecord;
  readonly tries: number;
  readonly signal: AbortSignal;
}

/** `null` when it was taken. What a stop interrupted has not failed. */
async function attempt(
  deps: ControlPorts,
  sink: EventSink,
  { lane, event, tries, signal }: DeliveryTry,
): Promise<ParkedDelivery | 'aborted' | null> {
  try {
    await sink.deliver(event, signal);
    lane.taken += 1;
    return null;
  } catch (error) {
    if (signal.aborted) return 'aborted';
    const failure = parkedFor(deps, sink, event, { tries: tries + 1, error });
    lane.failed = true;
    if (error instanceof SinkGone) lane.gone = failure.lastError;
    if (failure.dead) lane.gaveUp = true;
    else lane.blocked = true;
    return failure;
  }
}

interface FailedDelivery {
  readonly tries: number;
  readonly error: unknown;
}

function parkedFor(
  deps: ControlPorts,
  sink: EventSink,
  event: EventRecord,
  { tries, error }: FailedDelivery,
): ParkedDelivery {
  const message = error instanceof Error ? error.message : String(error);
  const dead = sink.maxTries !== null && tries >= sink.maxTries;
  const { settings, clock, ids } = deps;
  const retryMostMs = sink.longestRetryMs ?? settings.retryMostMs;
  return {
    sinkId: sink.id,
    seq: event.seq,
    subject: event.subject,
    tries,
    nextAt: clock.now() + (dead ? 0 : backoffMs({ ...settings, retryMostMs }, tries, ids.random())),
    lastError: message.slice(0, 500),
    dead,
  };
}

/**
 * Parks an event behind an earlier one of its subject. The event itself was not tried, so it is due as soon as its turn comes.
 */
function waitsBehind(deps: ControlPorts, sink: EventSink, event: EventRecord): ParkedDelivery {
  return {
    sinkId: sink.id,
    seq: event.seq,
    subject: event.subject,
    tries: 0,
    nextAt: deps.clock.now(),
    lastError: 'waits behind an earlier event',
    dead: false,
  };
}
