import type { SandboxQuote } from '../../contract/routing/quote.ts';
import type { RoutePlan } from '../../contract/routing/route.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export class Routes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Quotes a create; with the quote's id, the prices hold until it expires. */
  quote(request: CreateSandboxInput = {}, options: CallOptions = {}): Promise<SandboxQuote> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/quotes', json: request });
  }

  /** Returns the route of a create with this request, and its reasons. Nothing is created. */
  resolve(request: CreateSandboxInput = {}, options: CallOptions = {}): Promise<RoutePlan> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/routes/resolve', json: request });
  }
}
