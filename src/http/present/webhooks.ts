import type { Delivery, EventSinkEntry, Webhook } from '../../contract/events/webhook.ts';
import type { AuditEntry } from '../../contract/tenancy/audit.ts';
import type { Org, WhoAmI, Workspace } from '../../contract/tenancy/tenancy.ts';
import type { SinkView } from '../../control/events/list-sinks.ts';
import type { WebhookView } from '../../control/events/manage-webhooks.ts';
import type { SinkProgress } from '../../control/events/sink-progress.ts';
import type { DeliveryView } from '../../control/events/webhook-deliveries.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';
import type { AuditRecord } from '../../core/tenancy/audit.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord, OrgRecord, WorkspaceRecord } from '../../core/tenancy/tenancy.ts';

/** Maps receivers of events, tenants and the audit log, as `present.ts` maps everything else. */

function progressOf({ sink, lag, counts }: SinkProgress) {
  return {
    cursor: sink?.cursor ?? null,
    lag,
    parked: counts.waiting,
    dead: counts.dead,
    last_error: counts.lastError,
    last_taken_at: isoTimeOrNull(sink?.takenAt ?? null),
  };
}

export function presentWebhook({ webhook, progress }: WebhookView): Webhook {
  return {
    webhook_id: webhook.id,
    workspace_id: webhook.workspaceId,
    url: webhook.url,
    types: webhook.types && [...webhook.types],
    description: webhook.description,
    enabled: webhook.disabled === null,
    disabled_at: isoTimeOrNull(webhook.disabled?.at ?? null),
    disabled_reason: webhook.disabled?.reason ?? null,
    created_at: isoTime(webhook.createdAt),
    ...progressOf(progress),
  };
}

export function presentDelivery({ delivery, event }: DeliveryView): Delivery {
  const { dead, nextAt } = delivery;
  return {
    seq: delivery.seq,
    state: dead ? 'dead' : 'waiting',
    event_id: event?.id ?? null,
    type: event?.type ?? null,
    subject: delivery.subject,
    sandbox_id: event?.sandboxId ?? null,
    at: isoTimeOrNull(event?.at ?? null),
    tries: delivery.tries,
    next_try_at: dead ? null : isoTime(nextAt),
    dead_since: dead ? isoTime(nextAt) : null,
    last_error: delivery.lastError,
  };
}

export function presentSink(view: SinkView): EventSinkEntry {
  if ('webhook' in view) {
    const { id, workspaceId, url, disabled } = view.webhook;
    return {
      sink_id: webhookSinkId(id),
      kind: 'webhook',
      status: disabled === null ? 'active' : 'disabled',
      // Paths and queries of webhooks often hold a token.
      endpoint: new URL(url).origin,
      workspace_id: workspaceId,
      ...progressOf(view),
    };
  }
  const { id, kind, endpoint, configured } = view.configured;
  return {
    sink_id: id,
    kind,
    status: configured ? 'active' : 'not_configured',
    endpoint,
    workspace_id: null,
    ...progressOf(view),
  };
}

export function presentAudit(record: AuditRecord): AuditEntry {
  return {
    seq: record.seq,
    at: isoTime(record.at),
    workspace_id: record.workspaceId,
    key_id: record.keyId,
    actor: record.actor,
    consumer: record.consumer,
    action: record.action,
    target: record.target,
    outcome: record.outcome,
    request_id: record.requestId,
    details: { ...record.details },
  };
}

export function presentCaller(caller: Caller, key: KeyRecord | null): WhoAmI {
  return {
    actor: caller.actor,
    workspace_id: caller.workspaceId,
    org_id: caller.orgId,
    key_id: caller.keyId,
    key_name: key?.name ?? null,
    scopes: [...caller.scopes],
    expires_at: isoTimeOrNull(key?.expiresAt ?? null),
    local: caller.local,
  };
}

export function presentOrg({ id, name, createdAt }: OrgRecord): Org {
  return { org_id: id, name, created_at: isoTime(createdAt) };
}

export function presentWorkspace({ id, orgId, name, createdAt, policy }: WorkspaceRecord): Workspace {
  return { workspace_id: id, org_id: orgId, name, created_at: isoTime(createdAt), policy: policy ?? null };
}
