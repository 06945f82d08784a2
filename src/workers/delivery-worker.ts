import type { EventSink } from '../control/events/deliver-events.ts';
import { deliverEvents } from '../control/events/deliver-events.ts';
import type { ControlPorts } from '../control/ports/control-ports.ts';
import { Loop } from './loop.ts';

/** A receiver that fails is not run after at the pace of our commits. */
const BREATH_MS = 100;

/** Makes a loop for one sink: a slow sink delays no other. Commits that wrote events wake it. */
export function deliveryWorker(deps: ControlPorts, sink: EventSink): Loop {
  return new Loop(`deliver ${sink.id}`, deps, async (signal) => {
    const { more, retryAt, failed } = await deliverEvents(deps, sink, signal);
    if (failed) await deps.clock.sleep(BREATH_MS, signal).catch(() => {});
    return more ? deps.clock.now() : retryAt;
  });
}
