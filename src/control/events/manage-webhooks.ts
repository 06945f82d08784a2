import { SandboxerError } from '../../contract/errors/errors.ts';
import type {
  CreateWebhookRequest,
  RotateWebhookSecretRequest,
  UpdateWebhookRequest,
} from '../../contract/events/webhook.ts';
import type { WebhookRecord } from '../../core/events/webhook.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { findWebhook, webhookPort } from './find-webhook.ts';
import type { SinkProgress } from './sink-progress.ts';
import { webhookProgress } from './sink-progress.ts';

export interface WebhookView {
  readonly webhook: WebhookRecord;
  readonly progress: SinkProgress;
}

async function viewOf(tx: Tx, webhook: WebhookRecord): Promise<WebhookView> {
  return { webhook, progress: await webhookProgress(tx, webhook) };
}

function originOf(url: string): string {
  return new URL(url).origin;
}

/** It is told of what happens from now on: its cursor is written with it. */
export async function createWebhook(
  deps: ControlPorts,
  caller: Caller,
  request: CreateWebhookRequest,
): Promise<WebhookView & { readonly secret: string }> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  port.checkUrl(request.url);
  const { workspaceId } = caller;
  const id = deps.ids.next('whk');
  const secret = port.newSecret();
  const now = deps.clock.now();
  const webhook: WebhookRecord = {
    id,
    workspaceId,
    version: 1,
    url: request.url,
    types: request.types ?? null,
    description: request.description,
    sealedSecret: port.seal(id, secret),
    previousSecret: null,
    createdAt: now,
    enabledAt: now,
    disabled: null,
    eventSeq: 0,
  };
  const subject = { action: 'createWebhook', target: id, details: { origin: originOf(request.url) } };
  const view = await auditedTransaction(deps, caller, 'create-webhook', subject, async (tx) => {
    if ((await tx.webhooks.list(workspaceId)).length >= port.mostPerWorkspace) {
      throw new SandboxerError(
        'SBX_QUOTA_EXCEEDED',
        `A workspace has at most ${port.mostPerWorkspace} webhooks.`,
      );
    }
    await tx.webhooks.insert(webhook);
    await tx.outbox.setCursor({ sinkId: webhookSinkId(id), cursor: await tx.events.lastSeq() });
    return viewOf(tx, webhook);
  });
  await port.changed();
  return { ...view, secret };
}

export async function listWebhooks(deps: ControlPorts, caller: Caller): Promise<readonly WebhookView[]> {
  requireScope(caller, 'webhooks');
  return deps.store.read('webhooks', async (tx) => {
    const views: WebhookView[] = [];
    for (const webhook of await tx.webhooks.list(visibleWorkspace(caller)))
      views.push(await viewOf(tx, webhook));
    return views;
  });
}

export async function getWebhook(deps: ControlPorts, caller: Caller, id: string): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  return deps.store.read('webhooks', async (tx) => viewOf(tx, await findWebhook(tx, caller, id)));
}

async function changeWebhook(
  deps: ControlPorts,
  caller: Caller,
  id: string,
  action: string,
  details: Record<string, unknown>,
  change: (webhook: WebhookRecord, tx: Tx) => Promise<WebhookRecord> | WebhookRecord,
): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  const subject = { action, target: id, details };
  const view = await auditedTransaction(deps, caller, 'change-webhook', subject, async (tx) => {
    const webhook = await findWebhook(tx, caller, id);
    return viewOf(tx, await tx.webhooks.update(await change(webhook, tx)));
  });
  await port.changed();
  return view;
}

export async function updateWebhook(
  deps: ControlPorts,
  caller: Caller,
  id: string,
  request: UpdateWebhookRequest,
): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  if (request.url !== undefined) webhookPort(deps).checkUrl(request.url);
  const { url, types, description } = request;
  // Paths and queries of webhooks often hold a token.
  const details = { fields: Object.keys(request), ...(url !== undefined && { origin: originOf(url) }) };
  return changeWebhook(deps, caller, id, 'updateWebhook', details, (webhook) => ({
    ...webhook,
    url: url ?? webhook.url,
    types: types === undefined ? webhook.types : types,
    description: description ?? webhook.description,
  }));
}

/** The old secret signs beside the new one for a while. */
export async function rotateWebhookSecret(
  deps: ControlPorts,
  caller: Caller,
  id: string,
  { overlap }: RotateWebhookSecretRequest,
): Promise<WebhookView & { readonly secret: string }> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  const secret = port.newSecret();
  const until = deps.clock.now() + (overlap ?? 0) * 1000;
  const view = await changeWebhook(deps, caller, id, 'rotateWebhookSecret', { overlap }, (webhook) => ({
    ...webhook,
    sealedSecret: port.seal(id, secret),
    previousSecret: overlap !== null ? { sealed: webhook.sealedSecret, until } : null,
  }));
  return { ...view, secret };
}

/** Goes on where it stopped, with what is still kept. Idempotent. */
export async function enableWebhook(deps: ControlPorts, caller: Caller, id: string): Promise<WebhookView> {
  return changeWebhook(deps, caller, id, 'enableWebhook', {}, async (webhook, tx) => {
    await tx.outbox.setActive(webhookSinkId(id), true);
    return webhook.disabled ? { ...webhook, disabled: null, enabledAt: deps.clock.now() } : webhook;
  });
}

export async function disableWebhook(deps: ControlPorts, caller: Caller, id: string): Promise<WebhookView> {
  return changeWebhook(deps, caller, id, 'disableWebhook', {}, async (webhook, tx) => {
    await tx.outbox.setActive(webhookSinkId(id), false);
    return { ...webhook, disabled: webhook.disabled ?? { at: deps.clock.now(), reason: 'by request' } };
  });
}

/** With everything that was still to be delivered to it. */
export async function deleteWebhook(deps: ControlPorts, caller: Caller, id: string): Promise<void> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  const subject = { action: 'deleteWebhook', target: id };
  await auditedTransaction(deps, caller, 'delete-webhook', subject, async (tx) => {
    await findWebhook(tx, caller, id);
    await tx.webhooks.remove(id);
    await tx.outbox.removeSink(webhookSinkId(id));
  });
  await port.changed();
}
