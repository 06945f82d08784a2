import type { CloudEvent, EventType } from '../../contract/events/event.ts';

export interface WebhookRecord {
  readonly id: string;
  readonly workspaceId: string;
  /** For compare-and-set; counts up with every change. */
  readonly version: number;
  readonly url: string;
  /** `null` for every type. */
  readonly types: readonly EventType[] | null;
  readonly description: string;
  /** The secret, sealed with the server's master key. */
  readonly sealedSecret: string;
  /** Signs as well until then, so that a receiver has time to learn the new one. */
  readonly previousSecret: { readonly sealed: string; readonly until: number } | null;
  readonly createdAt: number;
  /** Failures count against the webhook from this time on. */
  readonly enabledAt: number;
  readonly disabled: { readonly at: number; readonly reason: string } | null;
  /** Number of its last event. */
  readonly eventSeq: number;
}

export function webhookSinkId(webhookId: string): string {
  return `webhook:${webhookId}`;
}

/** The services that webhooks need from outside the control plane. */
export interface WebhookPort {
  /** Dead letters in a row after which a webhook is disabled. */
  readonly disableAfter: number;
  readonly mostPerWorkspace: number;
  /** Throws `SBX_INVALID_REQUEST` for an address that would never be called. */
  checkUrl(url: string): void;
  newSecret(): string;
  seal(webhookId: string, secret: string): string;
  /** Sends once, now; rejects with the reason when it was not taken. */
  send(webhook: WebhookRecord, event: CloudEvent, signal: AbortSignal): Promise<void>;
  /** The stored webhooks changed: deliveries follow when this resolves. */
  changed(): Promise<void>;
  /** Starts a delivery round of the webhook: there may be new events for it. */
  wake(webhookId: string): void;
}
