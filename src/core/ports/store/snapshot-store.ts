import type { SnapshotRecord } from '../../assets/snapshot.ts';
import type { Page } from './page.ts';

export interface SnapshotQuery {
  readonly workspaceId: string | null;
  readonly sandboxUid?: string;
  readonly cursor?: string | null;
  readonly limit: number;
}

export interface SnapshotStore {
  get(id: string): Promise<SnapshotRecord | null>;
  insert(record: SnapshotRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: SnapshotRecord): Promise<SnapshotRecord>;
  /** Newest first, without the deleted ones. */
  list(query: SnapshotQuery): Promise<Page<SnapshotRecord>>;
  /** `deleting`, or past `expiresAt`. */
  dueDeletion(now: number, limit: number): Promise<readonly SnapshotRecord[]>;
  /** Returns the number of a workspace's snapshots that are not deleted, and their bytes together. */
  usage(workspaceId: string): Promise<{ readonly count: number; readonly bytes: number }>;
  /** Forgets those that were deleted before. */
  prune(before: number, limit: number): Promise<number>;
}
