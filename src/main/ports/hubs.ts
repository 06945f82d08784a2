import type { ConfiguredSink, EventSink } from '../../core/events/event-sink.ts';
import { FIN_HUB_SINK, finHubSink } from '../../sinks/fin-hub-sink.ts';
import type { HubOptions } from '../../sinks/hub-sink.ts';
import { STATE_HUB_SINK, stateHubSink } from '../../sinks/state-hub-sink.ts';
import type { Config } from '../config/config.ts';
import { eventSourceOf, userAgent } from './webhooks.ts';

interface Hub {
  readonly sink: EventSink | null;
  readonly description: ConfiguredSink;
}

type HubConfig = NonNullable<Config['state_hub']>;

function hub(
  id: typeof STATE_HUB_SINK | typeof FIN_HUB_SINK,
  config: HubConfig | null,
  owner: string,
  make: (options: HubOptions) => EventSink,
): Hub {
  const description = { id, kind: id } as const;
  if (config === null)
    return { sink: null, description: { ...description, endpoint: null, configured: false } };
  const sink = make({
    url: config.url,
    tokenFile: config.token_file,
    source: eventSourceOf(owner),
    userAgent: userAgent(),
    timeoutMs: config.timeout,
  });
  return { sink, description: { ...description, endpoint: new URL(config.url).origin, configured: true } };
}

/** Returns the hubs as receivers of events, where they are configured, and as `GET /v1/sinks` shows them, in any case. */
export function hubs(config: Pick<Config, 'state_hub' | 'fin_hub'>, owner: string): readonly Hub[] {
  return [
    hub(STATE_HUB_SINK, config.state_hub, owner, stateHubSink),
    hub(FIN_HUB_SINK, config.fin_hub, owner, finHubSink),
  ];
}

/** Describes a receiver that the caller of the server's start provides. */
export function describeSink({ id }: EventSink): ConfiguredSink {
  return { id, kind: 'other', endpoint: null, configured: true };
}
