import type {
  CreateWebhookRequest,
  Delivery,
  PingResult,
  UpdateWebhookRequest,
  Webhook,
  WebhookWithSecret,
} from '../../contract/events/webhook.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { CallOptions, RequestSpec, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export type NewWebhook = OutputOf<typeof WebhookWithSecret>;
export type CreateWebhookInput = InputOf<typeof CreateWebhookRequest>;

export interface DeliveryQuery {
  readonly state?: 'waiting' | 'dead' | undefined;
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
}

export interface DeliveryList {
  readonly items: readonly Delivery[];
  /** Value for `after` of the next page. */
  readonly next_cursor: string | null;
}

interface WebhookCall {
  readonly method: RequestSpec['method'];
  readonly id: string;
  readonly below: readonly string[];
}

export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Makes a webhook. Its secret is in this answer and nowhere else, ever. */
  create(request: CreateWebhookInput, options: CallOptions = {}): Promise<NewWebhook> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/webhooks', json: request });
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Webhook[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/webhooks' });
  }

  get(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#call({ method: 'GET', id, below: [] }, options);
  }

  update(id: string, request: UpdateWebhookRequest, options: CallOptions = {}): Promise<Webhook> {
    return this.#call({ method: 'PATCH', id, below: [] }, options, request);
  }

  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#call({ method: 'DELETE', id, below: [] }, options);
  }

  enable(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#call({ method: 'POST', id, below: ['enable'] }, options);
  }

  disable(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.#call({ method: 'POST', id, below: ['disable'] }, options);
  }

  /** Makes a new secret. `overlap`: time for which the old secret signs beside the new one; `null` for none. */
  rotateSecret(
    id: string,
    options: CallOptions & { readonly overlap?: string | number | null } = {},
  ): Promise<NewWebhook> {
    const { overlap, ...rest } = options;
    return this.#call(
      { method: 'POST', id, below: ['rotate-secret'] },
      rest,
      overlap === undefined ? {} : { overlap },
    );
  }

  ping(id: string, options: CallOptions = {}): Promise<OutputOf<typeof PingResult>> {
    return this.#call({ method: 'POST', id, below: ['ping'] }, options);
  }

  /** Lists the events that the webhook did not take. */
  deliveries(id: string, query: DeliveryQuery = {}, options: CallOptions = {}): Promise<DeliveryList> {
    const path = pathOf('webhooks', id, 'deliveries') + queryOf({ ...query });
    return this.#transport.json({ ...options, method: 'GET', path });
  }

  replayDelivery(id: string, seq: number, options: CallOptions = {}): Promise<Delivery> {
    return this.#call({ method: 'POST', id, below: ['deliveries', String(seq), 'replay'] }, options);
  }

  /** Sends all stored events to the webhook again, from a number on. */
  replay(id: string, from: number, options: CallOptions = {}): Promise<unknown> {
    const path = pathOf('webhooks', id, 'replay') + queryOf({ from });
    return this.#transport.json({ ...options, method: 'POST', path });
  }

  #call<T>({ method, id, below }: WebhookCall, options: CallOptions, json?: unknown): Promise<T> {
    return this.#transport.json({ ...options, method, path: pathOf('webhooks', id, ...below), json });
  }
}
