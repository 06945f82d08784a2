import { z } from 'zod';
import { Balance, GrantRequest, Meter, Transfer } from '../../../contract/money/money.ts';
import { getBalance, grantCredits, listTransfers } from '../../../control/money/credits.ts';
import { sandboxUsage } from '../../../control/sandboxes/get-sandbox.ts';
import { wholeNumber } from '../../parse/query-schemas.ts';
import { SandboxPathParams } from '../../parse/sandbox-id.ts';
import { json, jsonBody, route } from '../../route/route.ts';

const TransferPage = z
  .strictObject({ items: z.array(Transfer), next_cursor: z.string().nullable() })
  .meta({ id: 'TransferPage' });
const Usage = z.strictObject({ items: z.array(Meter) }).meta({ id: 'Usage' });
const tag = 'credits';

export const creditRoutes = [
  route({
    method: 'GET',
    url: '/v1/credits',
    operationId: 'getBalance',
    summary: 'Balance, holds and spending of the workspace.',
    tag,
    scope: 'read',
    responses: { 200: json(Balance, 'The balance.') },
    async handler({ services, caller }) {
      return { status: 200, body: services.present.balance(await getBalance(services.control, caller)) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/credits/grants',
    operationId: 'grantCredits',
    summary: 'Add credits. A repeated reference adds nothing again; with another amount it is refused.',
    tag,
    scope: 'billing',
    body: jsonBody(GrantRequest),
    responses: { 200: json(Balance, 'The balance with the grant.') },
    async handler({ services, caller, body }) {
      return {
        status: 200,
        body: services.present.balance(await grantCredits(services.control, caller, body)),
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/credits/transfers',
    operationId: 'listTransfers',
    summary: 'Every movement of money, in order.',
    tag,
    scope: 'read',
    query: z.strictObject({
      after: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0),
      cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER)
        .optional()
        .describe('`next_cursor` of the page before.'),
      order: z.enum(['oldest', 'newest']).default('oldest').describe('What comes first.'),
      limit: wholeNumber(1, 1000).default(100),
    }),
    responses: { 200: json(TransferPage, 'A page of transfers.') },
    async handler({ services, caller, query }) {
      const { after, cursor, limit, order } = query;
      const span =
        order === 'newest'
          ? { after, before: cursor ?? Number.MAX_SAFE_INTEGER, limit }
          : { after: cursor ?? after, limit };
      const transfers = await listTransfers(services.control, caller, span);
      const last = transfers.length === limit ? transfers.at(-1) : undefined;
      const items = transfers.map((record) => services.present.transfer(record));
      return { status: 200, body: { items, next_cursor: last ? String(last.seq) : null } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/usage',
    operationId: 'getUsage',
    summary: 'Use and cost of a sandbox, by generation.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    responses: { 200: json(Usage, 'Its meters.') },
    async handler({ services, caller, params }) {
      const { control, present } = services;
      const { sandbox, meters } = await sandboxUsage(control, caller, { id: params.id });
      const now = control.clock.now();
      return { status: 200, body: { items: meters.map((meter) => present.meter(meter, sandbox, now)) } };
    },
  }),
];
