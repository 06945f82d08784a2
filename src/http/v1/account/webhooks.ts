import { z } from 'zod';
import {
  CreateWebhookRequest,
  Delivery,
  PingResult,
  Replay,
  RotateWebhookSecretRequest,
  UpdateWebhookRequest,
  Webhook,
  WebhookWithSecret,
} from '../../../contract/events/webhook.ts';
import { WebhookId } from '../../../contract/values/ids.ts';
import {
  createWebhook,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
} from '../../../control/events/manage-webhooks.ts';
import { pingWebhook } from '../../../control/events/ping-webhook.ts';
import { listDeliveries, replayDelivery, replayFrom } from '../../../control/events/webhook-deliveries.ts';
import { wholeNumber } from '../../parse/query-schemas.ts';
import { presentDelivery, presentWebhook } from '../../present/webhooks.ts';
import { json, jsonBody, nothing, route } from '../../route/route.ts';

const WebhookList = z.strictObject({ items: z.array(Webhook) }).meta({ id: 'WebhookList' });
const DeliveryPage = z
  .strictObject({ items: z.array(Delivery), next_cursor: z.string().nullable() })
  .meta({ id: 'DeliveryPage' });

const params = z.strictObject({ webhook_id: WebhookId });
const Seq = wholeNumber(1, Number.MAX_SAFE_INTEGER);
const tag = 'webhooks';
const scope = 'webhooks';

export const webhookRoutes = [
  route({
    method: 'POST',
    url: '/v1/webhooks',
    operationId: 'createWebhook',
    summary: 'Have events posted to you, signed as Standard Webhooks say. The secret is in this answer only.',
    tag,
    scope,
    body: jsonBody(CreateWebhookRequest),
    responses: {
      201: json(WebhookWithSecret, 'The webhook with its secret. It receives events from now on.'),
    },
    async handler({ services, caller, body }) {
      const { secret, ...view } = await createWebhook(services.control, caller, body);
      return { status: 201, body: { ...presentWebhook(view), secret } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/webhooks',
    operationId: 'listWebhooks',
    summary: 'List the webhooks and how far they are.',
    tag,
    scope,
    responses: { 200: json(WebhookList, 'The webhooks, without their secrets.') },
    async handler({ services, caller }) {
      return {
        status: 200,
        body: { items: (await listWebhooks(services.control, caller)).map(presentWebhook) },
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/webhooks/{webhook_id}',
    operationId: 'getWebhook',
    summary: 'Show a webhook.',
    tag,
    scope,
    params,
    responses: { 200: json(Webhook, 'The webhook.') },
    async handler({ services, caller, params: { webhook_id } }) {
      return {
        status: 200,
        body: presentWebhook(await getWebhook(services.control, caller, { id: webhook_id })),
      };
    },
  }),
  route({
    method: 'PATCH',
    url: '/v1/webhooks/{webhook_id}',
    operationId: 'updateWebhook',
    summary: 'Change the URL of a webhook, or the events that it receives.',
    tag,
    scope,
    params,
    body: jsonBody(UpdateWebhookRequest),
    responses: { 200: json(Webhook, 'The webhook as it is now.') },
    async handler({ services, caller, params: { webhook_id }, body }) {
      return {
        status: 200,
        body: presentWebhook(
          await updateWebhook(services.control, caller, { id: webhook_id, request: body }),
        ),
      };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/webhooks/{webhook_id}',
    operationId: 'deleteWebhook',
    summary: 'Delete a webhook with everything that was still to be delivered to it.',
    tag,
    scope,
    params,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params: { webhook_id } }) {
      await deleteWebhook(services.control, caller, { id: webhook_id });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/webhooks/{webhook_id}/rotate-secret',
    operationId: 'rotateWebhookSecret',
    summary: 'Make a new secret. The old one signs beside it for a while.',
    tag,
    scope,
    params,
    body: jsonBody(RotateWebhookSecretRequest),
    responses: { 200: json(WebhookWithSecret, 'The webhook with its new secret.') },
    async handler({ services, caller, params: { webhook_id }, body }) {
      const { secret, ...view } = await rotateWebhookSecret(services.control, caller, {
        id: webhook_id,
        request: body,
      });
      return { status: 200, body: { ...presentWebhook(view), secret } };
    },
  }),
  ...(['enable', 'disable'] as const).map((verb) =>
    route({
      method: 'POST',
      url: `/v1/webhooks/{webhook_id}/${verb}`,
      operationId: `${verb}Webhook`,
      summary: verb === 'enable' ? 'Go on where it stopped.' : 'Deliver nothing to it until it is enabled.',
      tag,
      scope,
      params,
      responses: { 200: json(Webhook, 'The webhook as it is now.') },
      async handler({ services, caller, params: { webhook_id } }) {
        const act = verb === 'enable' ? enableWebhook : disableWebhook;
        return { status: 200, body: presentWebhook(await act(services.control, caller, { id: webhook_id })) };
      },
    }),
  ),
  route({
    method: 'POST',
    url: '/v1/webhooks/{webhook_id}/ping',
    operationId: 'pingWebhook',
    summary: 'Send one signed event of the type `webhook.ping` now, and see what comes of it.',
    tag,
    scope,
    params,
    responses: { 200: json(PingResult, 'Whether it was taken.') },
    async handler({ services, exchange, caller, params: { webhook_id } }) {
      const { taken, error, durationMs } = await pingWebhook(services.control, caller, {
        id: webhook_id,
        signal: exchange.signal,
      });
      return { status: 200, body: { taken, error, duration_ms: durationMs } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/webhooks/{webhook_id}/deliveries',
    operationId: 'listDeliveries',
    summary: 'The events that it did not take: those that are tried again, and those that were given up.',
    tag,
    scope,
    params,
    query: z.strictObject({
      state: z.enum(['waiting', 'dead']).optional(),
      after: wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0),
      limit: wholeNumber(1, 200).default(100),
    }),
    responses: { 200: json(DeliveryPage, 'Deliveries; pass `next_cursor` as `after` to go on.') },
    async handler({ services, caller, params: { webhook_id }, query }) {
      const { state, after, limit } = query;
      const views = await listDeliveries(services.control, caller, {
        id: webhook_id,
        ...(state && { dead: state === 'dead' }),
        after,
        limit,
      });
      const last = views.length === limit ? views.at(-1) : undefined;
      return {
        status: 200,
        body: { items: views.map(presentDelivery), next_cursor: last ? String(last.delivery.seq) : null },
      };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/webhooks/{webhook_id}/deliveries/{seq}/replay',
    operationId: 'replayDelivery',
    summary: 'Try one delivery again, now.',
    tag,
    scope,
    params: params.extend({ seq: Seq }),
    responses: { 202: json(Delivery, 'It is tried again.') },
    async handler({ services, caller, params: { webhook_id, seq } }) {
      const view = await replayDelivery(services.control, caller, { id: webhook_id, seq });
      return { status: 202, body: presentDelivery(view) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/webhooks/{webhook_id}/replay',
    operationId: 'replayWebhook',
    summary: 'Tell it again of everything that is kept, from a number on.',
    tag,
    scope,
    params,
    query: z.strictObject({ from: Seq }),
    responses: { 202: json(Replay, 'The number it starts from.') },
    async handler({ services, caller, params: { webhook_id }, query }) {
      return {
        status: 202,
        body: await replayFrom(services.control, caller, { id: webhook_id, from: query.from }),
      };
    },
  }),
];
