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
import type { Control } from '../control.ts';
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

/** Creates a webhook for events from now on: its cursor is written with it. */
export async function createWebhook(
  control: Control,
  caller: Caller,
  request: CreateWebhookRequest,
): Promise<WebhookView & { readonly secret: string }> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  port.checkUrl(request.url);
  const { workspaceId } = caller;
  const id = control.ids.next('whk');
  const secret = port.newSecret();
  const now = control.clock.now();
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
  const view = await auditedTransaction(control, caller, { label: 'create-webhook', subject }, async (tx) => {
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

export async function listWebhooks(control: Control, caller: Caller): Promise<readonly WebhookView[]> {
  requireScope(caller, 'webhooks');
  return control.store.read('webhooks', async (tx) => {
    const views: WebhookView[] = [];
    for (const webhook of await tx.webhooks.list(visibleWorkspace(caller)))
      views.push(await viewOf(tx, webhook));
    return views;
  });
}

export async function getWebhook(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  return control.store.read('webhooks', async (tx) => viewOf(tx, await findWebhook(tx, caller, id)));
}

interface WebhookChange {
  readonly id: string;
  readonly action: string;
  readonly details: Record<string, unknown>;
  readonly change: (webhook: WebhookRecord, tx: Tx) => Promise<WebhookRecord> | WebhookRecord;
}

async function changeWebhook(
  deps: ControlPorts,
  caller: Caller,
  { id, action, details, change }: WebhookChange,
): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(deps);
  const subject = { action, target: id, details };
  const view = await auditedTransaction(deps, caller, { label: 'change-webhook', subject }, async (tx) => {
    const webhook = await findWebhook(tx, caller, id);
    return viewOf(tx, await tx.webhooks.update(await change(webhook, tx)));
  });
  await port.changed();
  return view;
}

interface UpdateWebhook {
  readonly id: string;
  readonly request: UpdateWebhookRequest;
}

export async function updateWebhook(
  control: Control,
  caller: Caller,
  { id, request }: UpdateWebhook,
): Promise<WebhookView> {
  requireScope(caller, 'webhooks');
  if (request.url !== undefined) webhookPort(control).checkUrl(request.url);
  const { url, types, description } = request;
  // Paths and queries of webhooks often hold a token.
  const details = { fields: Object.keys(request), ...(url !== undefined && { origin: originOf(url) }) };
  return changeWebhook(control, caller, {
    id,
    action: 'updateWebhook',
    details,
    change: (webhook) => ({
      ...webhook,
      url: url ?? webhook.url,
      types: types === undefined ? webhook.types : types,
      description: description ?? webhook.description,
    }),
  });
}

interface RotateWebhookSecret {
  readonly id: string;
  readonly request: RotateWebhookSecretRequest;
}

/** The old secret signs beside the new one for a while. */
export async function rotateWebhookSecret(
  control: Control,
  caller: Caller,
  { id, request: { overlap } }: RotateWebhookSecret,
): Promise<WebhookView & { readonly secret: string }> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  const secret = port.newSecret();
  const until = control.clock.now() + (overlap ?? 0) * 1000;
  const view = await changeWebhook(control, caller, {
    id,
    action: 'rotateWebhookSecret',
    details: { overlap },
    change: (webhook) => ({
      ...webhook,
      sealedSecret: port.seal(id, secret),
      previousSecret: overlap !== null ? { sealed: webhook.sealedSecret, until } : null,
    }),
  });
  return { ...view, secret };
}

/** Goes on where it stopped, with what is still kept. Idempotent. */
export async function enableWebhook(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<WebhookView> {
  return changeWebhook(control, caller, {
    id,
    action: 'enableWebhook',
    details: {},
    change: async (webhook, tx) => {
      await tx.outbox.setActive(webhookSinkId(id), true);
      return webhook.disabled ? { ...webhook, disabled: null, enabledAt: control.clock.now() } : webhook;
    },
  });
}

export async function disableWebhook(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<WebhookView> {
  return changeWebhook(control, caller, {
    id,
    action: 'disableWebhook',
    details: {},
    change: async (webhook, tx) => {
      await tx.outbox.setActive(webhookSinkId(id), false);
      return { ...webhook, disabled: webhook.disabled ?? { at: control.clock.now(), reason: 'by request' } };
    },
  });
}

/** Deletes a webhook with all deliveries that were still waiting for it. */
export async function deleteWebhook(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireScope(caller, 'webhooks');
  const port = webhookPort(control);
  const subject = { action: 'deleteWebhook', target: id };
  await auditedTransaction(control, caller, { label: 'delete-webhook', subject }, async (tx) => {
    await findWebhook(tx, caller, id);
    await tx.webhooks.remove(id);
    await tx.outbox.removeSink(webhookSinkId(id));
  });
  await port.changed();
}
