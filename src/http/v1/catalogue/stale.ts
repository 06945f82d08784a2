import { ReapReport, ReapRequest, StaleReport } from '../../../contract/sandboxes/stale.ts';
import { findStale } from '../../../control/hosts/find-stale.ts';
import { reapStale } from '../../../control/hosts/reap-stale.ts';
import { isoTime } from '../../../core/ports/clock.ts';
import { json, jsonBody, route } from '../../route/route.ts';

const tag = 'hosts';

export const staleRoutes = [
  route({
    method: 'GET',
    url: '/v1/stale',
    operationId: 'inspectStale',
    summary:
      'Leftovers that should be gone, with evidence; with the scope `server`, on every backend and host.',
    tag,
    scope: 'read',
    responses: { 200: json(StaleReport, 'What was found. Nothing was changed.') },
    async handler({ services, exchange, caller }) {
      const { stale, unseen, at } = await findStale(services.control, caller, { signal: exchange.signal });
      const items = stale.map(({ item }) => item);
      return { status: 200, body: { items, unseen, seen_at: isoTime(at) } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/stale/reap',
    operationId: 'reapStale',
    summary: 'Remove what is stale and ours. A dry run, unless the request says otherwise.',
    tag,
    scope: 'sandboxes',
    body: jsonBody(ReapRequest),
    responses: { 200: json(ReapReport, 'What was, or would be, removed.') },
    async handler({ services, exchange, caller, body }) {
      const { control } = services;
      return {
        status: 200,
        body: await reapStale(control, caller, { request: body, signal: exchange.signal }),
      };
    },
  }),
];
