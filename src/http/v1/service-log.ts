import { z } from 'zod';
import { FRAMES_MEDIA_TYPE, ServiceName } from '../../contract/sandboxes/exec.ts';
import { readServiceLog } from '../../control/use/read-service-log.ts';
import { preferredType } from '../parse/media-type.ts';
import { flag, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { route, STREAMED } from '../route/route.ts';
import { EVENT_STREAM, NDJSON } from '../streams/stream-item.ts';
import { streamProcess } from '../streams/stream-process.ts';
import { STREAM_CONTENT } from './exec.ts';

const MOST_LINES = 1_000_000;

export const serviceLogRoutes = [
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/logs',
    operationId: 'readServiceLog',
    summary: 'Stored output of a service of a sandbox.',
    tag: 'exec',
    scope: 'read',
    params: SandboxPathParams,
    query: z.strictObject({
      service: ServiceName.optional().describe('The default one when left out.'),
      tail: wholeNumber(0, MOST_LINES).optional().describe('So many lines from its end.'),
      follow: flag().default(false).describe('Go on until the service ends.'),
    }),
    responses: {
      200: { description: 'Output of the service, then the end of the log.', content: STREAM_CONTENT },
    },
    async handler({ services, exchange, caller, params, query }) {
      const type = preferredType(exchange.header('accept'), [NDJSON, EVENT_STREAM, FRAMES_MEDIA_TYPE]);
      exchange.response.once('close', services.slots.take(caller));
      const log = await readServiceLog(services.control, caller, {
        id: params.id,
        service: query.service,
        tail: query.tail ?? null,
        follow: query.follow,
        signal: exchange.signal,
      });
      await streamProcess(services, exchange, type, log);
      return STREAMED;
    },
  }),
];
