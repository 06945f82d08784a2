import type { WebhookRecord } from '../../events/webhook.ts';

export interface WebhookStore {
  get(id: string): Promise<WebhookRecord | null>;
  insert(record: WebhookRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: WebhookRecord): Promise<WebhookRecord>;
  remove(id: string): Promise<void>;
  /** Oldest first. */
  list(workspaceId: string | null): Promise<readonly WebhookRecord[]>;
}
