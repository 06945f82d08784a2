import type { ConfiguredSink, EventSink } from '../core/event-sink.ts';
import { STATE_HUB_SINK, StateHubSink } from '../sinks/state-hub-sink.ts';
import type { Config } from './config.ts';
import { eventSourceOf, userAgent } from './webhooks.ts';

/** The hub as a receiver of events, when it is configured, and as `GET /v1/sinks` shows it, in any case. */
export function stateHub(
  config: Config['state_hub'],
  owner: string,
): { readonly sink: EventSink | null; readonly description: ConfiguredSink } {
  const description = { id: STATE_HUB_SINK, kind: 'state-hub' } as const;
  if (config === null)
    return { sink: null, description: { ...description, endpoint: null, configured: false } };
  const sink = new StateHubSink({
    url: config.url,
    tokenFile: config.token_file,
    source: eventSourceOf(owner),
    userAgent: userAgent(),
    timeoutMs: config.timeout,
  });
  return { sink, description: { ...description, endpoint: new URL(config.url).origin, configured: true } };
}

/** A receiver that whoever starts the server brings along. */
export function describeSink({ id }: EventSink): ConfiguredSink {
  return { id, kind: 'other', endpoint: null, configured: true };
}
