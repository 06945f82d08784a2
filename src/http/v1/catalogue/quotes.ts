import { SandboxQuote } from '../../../contract/routing/quote.ts';
import { CreateSandboxRequest } from '../../../contract/sandboxes/sandbox.ts';
import { quoteSandbox } from '../../../control/sandboxes/quote-sandbox.ts';
import { isoTime } from '../../../core/ports/clock.ts';
import { json, jsonBody, route } from '../../route/route.ts';

export const quoteRoutes = [
  route({
    method: 'POST',
    url: '/v1/quotes',
    operationId: 'quoteSandbox',
    summary: 'Cost of a create on each backend. A create with the quote keeps its prices.',
    tag: 'routes',
    scope: 'sandboxes',
    body: jsonBody(CreateSandboxRequest, 'large'),
    responses: { 201: json(SandboxQuote, 'The quote.') },
    async handler({ services, caller, body }) {
      const quote = await quoteSandbox(services.control, caller, body);
      return {
        status: 201,
        body: {
          quote_id: quote.id,
          created_at: isoTime(quote.createdAt),
          expires_at: isoTime(quote.expiresAt),
          profile: quote.profile,
          seconds: quote.seconds,
          expected_charge_micro_usd: quote.expectedChargeMicroUsd,
          max_charge_micro_usd: quote.maxChargeMicroUsd,
          plan: quote.plan,
        },
      };
    },
  }),
];
