import { deliverEvents, type EventSink } from '../control/deliver-events.ts';
import type { ControlDeps } from '../control/deps.ts';
import { Loop } from './loop.ts';

/** One loop per sink: a slow one delays nobody else. Woken by commits that wrote events. */
export function deliveryWorker(deps: ControlDeps, sink: EventSink): Loop {
  return new Loop(`deliver ${sink.id}`, deps.clock, deps.log, async (signal) => {
    const { more, retryAt } = await deliverEvents(deps, sink, signal);
    return more ? deps.clock.now() : retryAt;
  });
}
