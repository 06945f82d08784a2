import { z } from 'zod';
import { EventSinkEntry } from '../../contract/webhook.ts';
import { listSinks } from '../../control/list-sinks.ts';
import { presentSink } from '../present-webhook.ts';
import { json, route } from '../route.ts';

const SinkList = z.strictObject({ items: z.array(EventSinkEntry) }).meta({ id: 'SinkList' });

export const sinkRoutes = [
  route({
    method: 'GET',
    url: '/v1/sinks',
    operationId: 'listSinks',
    summary: 'Everybody who is told of events, how far they are, and what stands in their way.',
    tag: 'events',
    scope: 'server',
    responses: { 200: json(SinkList, 'The receivers, also those that are not configured.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: (await listSinks(services.deps, caller)).map(presentSink) } };
    },
  }),
];
