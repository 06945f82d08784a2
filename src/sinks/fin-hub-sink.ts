import { toCloudEvent } from '../core/events/event.ts';
import type { EventSink } from '../core/events/event-sink.ts';
import type { HubOptions } from './hub-sink.ts';
import { HubSink } from './hub-sink.ts';

export const FIN_HUB_SINK = 'fin-hub';

/** The events that change what a customer owes or has. */
const TOLD: ReadonlySet<string> = new Set([
  'sandbox.billed',
  'credits.granted',
  'credits.expired',
  'budget.alert',
]);

/** Tells fin-hub of bills, grants and budgets, as CloudEvents. */
export function finHubSink(options: HubOptions): EventSink {
  return new HubSink(options, {
    id: FIN_HUB_SINK,
    accepts: ({ type }) => TOLD.has(type),
    body: (event) => toCloudEvent(event, options.source),
  });
}
