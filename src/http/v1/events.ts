import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { CloudEvent, EventPage, EventType } from '../../contract/events/event.ts';
import { SandboxId } from '../../contract/values/ids.ts';
import { eventFilter, listEvents } from '../../control/events/list-events.ts';
import { toCloudEvent } from '../../core/events/event.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { preferredType } from '../parse/media-type.ts';
import { listOf, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import type { Answer } from '../route/route.ts';
import { json, route, STREAMED } from '../route/route.ts';
import type { HttpServices } from '../services/http-services.ts';
import { streamEvents } from '../streams/stream-events.ts';
import { EVENT_STREAM } from '../streams/stream-item.ts';

const Seq = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const Query = z.strictObject({
  after: Seq.optional().describe(
    'Only events with a greater number. A stream without it starts now, a page at 0.',
  ),
  cursor: Seq.optional().describe('`next_cursor` of the page before.'),
  order: z
    .enum(['asc', 'desc'])
    .default('asc')
    .describe('Oldest or newest first. A stream is always in order.'),
  limit: wholeNumber(1, 1000).default(100),
  type: listOf(EventType, 32).optional(),
});

const page = json(EventPage, 'Events in order; as a stream when `Accept` asks for text/event-stream.');
const RESPONSES = {
  200: { ...page, content: { 'application/json': EventPage, [EVENT_STREAM]: CloudEvent } } as typeof page,
} as const;

/** Reads the position that a reconnecting event source sends; it wins over a position in the query. */
function lastEventId(exchange: Exchange): number | null {
  const given = exchange.header('last-event-id');
  if (given === undefined || given === '') return null;
  const parsed = Seq.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new SandboxerError('SBX_INVALID_REQUEST', 'The Last-Event-ID is not the number of an event.', {
    field: 'Last-Event-ID',
  });
}

interface AskedEvents {
  readonly query: z.output<typeof Query>;
  readonly sandboxId: string | undefined;
}

async function answer(
  services: HttpServices,
  exchange: Exchange,
  caller: Caller,
  { query, sandboxId }: AskedEvents,
): Promise<Answer<typeof RESPONSES>> {
  const { control, eventSource } = services;
  const type = preferredType(exchange.header('accept'), ['application/json', EVENT_STREAM]);
  const filter = await eventFilter(control, caller, { sandboxId, types: query.type });
  if (type === EVENT_STREAM) {
    const after = lastEventId(exchange) ?? query.cursor ?? query.after ?? null;
    exchange.response.once('close', services.slots.take(caller));
    await streamEvents(services, exchange, filter, after);
    return STREAMED;
  }
  const { after = 0, cursor, limit } = query;
  const range =
    query.order === 'desc'
      ? { after, before: cursor ?? Number.MAX_SAFE_INTEGER, limit }
      : { after: cursor ?? after, limit };
  const events = await listEvents(control, filter, range);
  const last = events.length === query.limit ? events.at(-1) : undefined;
  const items = events.map((event) => toCloudEvent(event, eventSource));
  return { status: 200, body: { items, next_cursor: last ? String(last.seq) : null } };
}

export const eventRoutes = [
  route({
    method: 'GET',
    url: '/v1/events',
    operationId: 'listEvents',
    summary: 'The event log, as pages or live. Resume a stream with Last-Event-ID.',
    tag: 'events',
    scope: 'read',
    query: Query.extend({ sandbox_id: SandboxId.optional().describe('Only events of this sandbox.') }),
    headers: ['Last-Event-ID'],
    responses: RESPONSES,
    handler: ({ services, exchange, caller, query }) =>
      answer(services, exchange, caller, { query, sandboxId: query.sandbox_id }),
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/events',
    operationId: 'listSandboxEvents',
    summary: 'The events of one sandbox, as pages or live.',
    tag: 'events',
    scope: 'read',
    params: SandboxPathParams,
    query: Query,
    headers: ['Last-Event-ID'],
    responses: RESPONSES,
    handler: ({ services, exchange, caller, params, query }) =>
      answer(services, exchange, caller, { query, sandboxId: params.id }),
  }),
];
