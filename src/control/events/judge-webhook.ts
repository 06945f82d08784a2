import { webhookSinkId } from '../../core/events/webhook.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { webhookPort } from './find-webhook.ts';
import { webhookProgress } from './sink-progress.ts';

/**
 * Disables a webhook whose receiver is gone for good (`gone` says why), or whose latest events, as many as the limit, all died.
 * Nothing is lost: its untaken events are kept for as long as events are.
 */
export async function judgeWebhook(
  deps: ControlPorts,
  webhookId: string,
  gone: string | null,
): Promise<boolean> {
  const { disableAfter } = webhookPort(deps);
  return deps.store.transaction('judge-webhook', async (tx) => {
    const webhook = await tx.webhooks.get(webhookId);
    if (!webhook || webhook.disabled) return false;
    const { counts } = await webhookProgress(tx, webhook);
    if (gone === null && counts.deadSince < disableAfter) return false;
    const at = deps.clock.now();
    const reason = gone ?? `${counts.deadSince} events in a row could not be delivered: ${counts.lastError}`;
    const eventSeq = webhook.eventSeq + 1;
    await tx.webhooks.update({ ...webhook, disabled: { at, reason }, eventSeq });
    await tx.outbox.setActive(webhookSinkId(webhookId), false);
    await tx.events.append([
      {
        id: deps.ids.next('evt'),
        at,
        type: 'webhook.disabled',
        workspaceId: webhook.workspaceId,
        subject: `webhook:${webhookId}`,
        subjectSeq: eventSeq,
        sandboxUid: null,
        sandboxId: null,
        generation: null,
        state: null,
        previousState: null,
        actor: 'atm',
        consumer: {},
        details: { webhook_id: webhookId, reason },
      },
    ]);
    return true;
  });
}
