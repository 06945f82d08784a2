import type { Boot, StampLabels } from '../wire/protocol.ts';

/** What a new object starts from besides nothing. */
export type Origin = { readonly snapshotId: string } | { readonly name: string } | null;

export interface WebhookBody {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly labels: StampLabels;
  readonly billed_ms: number;
  readonly at: number;
}

/** Something that happened in the stub's world: what stands behind the objects follows it. */
export type StubEvent =
  | { readonly type: 'created'; readonly name: string; readonly boot: Boot; readonly from: Origin }
  | { readonly type: 'running' | 'paused' | 'resumed' | 'deleting' | 'gone'; readonly name: string }
  | { readonly type: 'snapshot_taken'; readonly snapshotId: string; readonly source: string }
  | { readonly type: 'snapshot_deleted'; readonly snapshotId: string }
  | { readonly type: 'webhook'; readonly body: WebhookBody };

export type StubEventListener = (event: StubEvent) => void;
