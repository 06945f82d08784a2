import { SandboxerError } from '../../contract/errors/errors.ts';
import type { WebhookPort, WebhookRecord } from '../../core/events/webhook.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** Finds a webhook that the caller may see; one of another workspace counts as not found. */
export async function findWebhook(tx: Tx, caller: Caller, id: string): Promise<WebhookRecord> {
  const webhook = await tx.webhooks.get(id);
  const workspace = visibleWorkspace(caller);
  if (webhook && (workspace === null || webhook.workspaceId === workspace)) return webhook;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no webhook "${id}".`, {
    remedy: 'List the webhooks to see which exist.',
  });
}

export function webhookPort(deps: ControlPorts): WebhookPort {
  if (deps.webhooks) return deps.webhooks;
  throw new SandboxerError('SBX_UNAVAILABLE', 'This server delivers no webhooks.');
}
