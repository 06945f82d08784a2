import type { Boot, StampLabels } from '../wire/protocol.ts';

/** Source of a new object's files; `null`: empty. */
export type Origin = { readonly snapshotId: string } | { readonly name: string } | null;

export interface WebhookBody {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly labels: StampLabels;
  readonly billed_ms: number;
  readonly at: number;
}

/** Events of the stub's world, which the machines of the objects follow. */
export type StubEvent =
  | { readonly type: 'created'; readonly name: string; readonly boot: Boot; readonly from: Origin }
  | { readonly type: 'running' | 'paused' | 'resumed' | 'deleting' | 'gone'; readonly name: string }
  | { readonly type: 'snapshot_taken'; readonly snapshotId: string; readonly source: string }
  | { readonly type: 'snapshot_deleted'; readonly snapshotId: string }
  | { readonly type: 'webhook'; readonly body: WebhookBody };

export type StubEventListener = (event: StubEvent) => void;
