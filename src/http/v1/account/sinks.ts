import { z } from 'zod';
import { EventSinkEntry, Replay } from '../../../contract/events/webhook.ts';
import { listSinks } from '../../../control/events/list-sinks.ts';
import { replaySink } from '../../../control/events/replay-sink.ts';
import { text, wholeNumber } from '../../parse/query-schemas.ts';
import { presentSink } from '../../present/webhooks.ts';
import { json, route } from '../../route/route.ts';

const SinkList = z.strictObject({ items: z.array(EventSinkEntry) }).meta({ id: 'SinkList' });

export const sinkRoutes = [
  route({
    method: 'GET',
    url: '/v1/sinks',
    operationId: 'listSinks',
    summary: 'Receivers of events, their progress, and what blocks them.',
    tag: 'events',
    scope: 'server',
    responses: { 200: json(SinkList, 'The receivers, also those that are not configured.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: (await listSinks(services.control, caller)).map(presentSink) } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sinks/{sink_id}/replay',
    operationId: 'replaySink',
    summary: 'Tell a receiver of the configuration again of everything that is kept, from a number on.',
    tag: 'events',
    scope: 'server',
    params: z.strictObject({ sink_id: text(128) }),
    query: z.strictObject({ from: wholeNumber(1, Number.MAX_SAFE_INTEGER) }),
    responses: { 202: json(Replay, 'The number it starts from.') },
    async handler({ services, caller, params, query }) {
      return {
        status: 202,
        body: await replaySink(services.control, caller, { sinkId: params.sink_id, from: query.from }),
      };
    },
  }),
];
