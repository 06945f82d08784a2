import { setTimeout as sleep } from 'node:timers/promises';
import type { CloudEvent, EventType } from '../../contract/events/event.ts';
import { ServerSentEventDecoder } from '../streams/server-sent-events.ts';
import { SandboxerApiError } from '../transport/api-error.ts';
import { SandboxerConnectionError } from '../transport/connection-error.ts';
import { PagedList } from '../transport/paged-list.ts';
import { queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export interface EventFilter {
  readonly sandbox?: string | undefined;
  readonly type?: readonly EventType[] | undefined;
  /** Number after which the events begin. */
  readonly after?: number | undefined;
  /** `desc`: newest first. */
  readonly order?: 'asc' | 'desc' | undefined;
  readonly limit?: number | undefined;
}

export interface FollowOptions extends CallOptions {
  readonly sandbox?: string | undefined;
  readonly type?: readonly EventType[] | undefined;
  /** Id of the last event that was read; the stream begins after it. */
  readonly after?: string | undefined;
}

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;

/** Errors that a fresh connection may cure. */
function passes(error: unknown): boolean {
  if (error instanceof SandboxerApiError) return error.retryable;
  if (error instanceof SandboxerConnectionError) return error.failure !== 'protocol';
  return error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
}

export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(filter: EventFilter = {}, options: CallOptions = {}): PagedList<CloudEvent> {
    const { sandbox, ...query } = filter;
    return new PagedList(this.#transport, '/v1/events', { ...query, sandbox_id: sandbox }, options);
  }

  /** Follows events as they happen, for ever. A broken connection continues where it broke: no event is lost or repeated. */
  async *follow(options: FollowOptions = {}): AsyncGenerator<CloudEvent> {
    const signal = this.#transport.signalOf(options);
    let last = options.after;
    let failures = 0;
    for (;;) {
      try {
        for await (const { id, event } of this.#connection(options, last)) {
          failures = 0;
          last = id ?? last;
          yield event;
        }
      } catch (error) {
        if (signal?.aborted || !passes(error)) throw error;
      }
      const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** failures);
      failures += 1;
      await sleep(delay, undefined, signal ? { signal } : {});
    }
  }

  async *#connection(options: FollowOptions, last: string | undefined) {
    const { sandbox, type } = options;
    const response = await this.#transport.open({
      signal: options.signal,
      timeoutMs: options.timeoutMs,
      method: 'GET',
      path: `/v1/events${queryOf({ sandbox_id: sandbox, type })}`,
      accept: 'text/event-stream',
      ...(last === undefined ? {} : { headers: { 'last-event-id': last } }),
    });
    const decoder = new ServerSentEventDecoder();
    for await (const bytes of response) {
      for (const { id, data } of decoder.decode(bytes as Buffer)) {
        yield { id, event: JSON.parse(data) as CloudEvent };
      }
    }
  }
}
