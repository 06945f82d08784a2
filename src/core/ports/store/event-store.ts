import type { EventDraft, EventRecord } from '../../events/event.ts';

export interface EventQuery {
  readonly workspaceId: string | null;
  readonly sandboxUid?: string;
  readonly types?: readonly string[];
  readonly after: number;
  /** Only events with a smaller number, and newest first. Left out: oldest first. */
  readonly before?: number;
  readonly limit: number;
}

export interface EventStore {
  /** Numbers the events and writes them. `list` shows a stable prefix: no smaller number appears later. */
  append(drafts: readonly EventDraft[]): Promise<readonly EventRecord[]>;
  list(query: EventQuery): Promise<readonly EventRecord[]>;
  lastSeq(): Promise<number>;
  /** Removes events before `before` that lie at or below `seq`. */
  prune(before: number, seq: number, limit: number): Promise<number>;
}
