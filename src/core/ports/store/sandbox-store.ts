import type { SandboxState } from '../../../contract/values/state.ts';
import type { SandboxDocuments, SandboxRecord } from '../../lifecycle/sandbox.ts';
import type { Page } from './page.ts';

export interface SandboxQuery {
  /** `null` sees every workspace. */
  readonly workspaceId: string | null;
  readonly states?: readonly SandboxState[];
  readonly profileId?: string;
  readonly extensionId?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly harness?: string;
  /** Matches the session, run or job id. */
  readonly externalId?: string;
  readonly cursor?: string | null;
  readonly limit: number;
}

export interface SandboxStore {
  get(uid: string): Promise<SandboxRecord | null>;
  /**
   * Finds a sandbox by uid, or by public id: the row that is not destroyed, else the one created last. With `workspaceId: null`,
   * an id that several workspaces have is not found.
   */
  find(workspaceId: string | null, idOrUid: string): Promise<SandboxRecord | null>;
  findReusable(workspaceId: string, reuseKey: string): Promise<SandboxRecord | null>;
  /** Rejects with `SBX_ID_TAKEN` when a row of (workspace, id) is not destroyed, and with `SBX_CONFLICT` when the reuse key does. */
  insert(record: SandboxRecord): Promise<void>;
  /** Compare-and-set on `record.version`, which is the version that was read. Returns the stored row (version + 1). */
  update(record: SandboxRecord): Promise<SandboxRecord>;
  documents(uid: string, generation: number): Promise<SandboxDocuments | null>;
  insertDocuments(documents: SandboxDocuments): Promise<void>;
  /** Newest first, by (createdAt, uid). */
  list(query: SandboxQuery): Promise<Page<SandboxRecord>>;
  /** Rows in living states: derived, never a counter. */
  countLiving(workspaceId: string): Promise<number>;
  /** Rows of any state that were created from `since` on. */
  countCreated(workspaceId: string, since: number): Promise<number>;
  /** Rows of every workspace by state, without the destroyed ones. */
  countByState(): Promise<ReadonlyMap<SandboxState, number>>;
  /** `workDueAt ≤ now` and no lease in force at `now`, oldest first. */
  dueWork(now: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** Living or failed, with `deadlineAt ≤ now`. */
  dueDeadlines(now: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** Established, not paused, with `idleDeadlineAt ≤ now`. */
  dueIdle(now: number, limit: number): Promise<readonly SandboxRecord[]>;
  /** The earliest future time at which any of the three above would find something; `null` when none. */
  nextDueAt(): Promise<number | null>;
  /** Established rows on this extension, by uid, after `afterUid`. */
  establishedOn(
    extensionId: string,
    afterUid: string | null,
    limit: number,
  ): Promise<readonly SandboxRecord[]>;
  /** Gives up every lease not held by `owner`. Only for a store that is exclusive to one process. */
  releaseForeignLeases(owner: string, now: number): Promise<number>;
  /** Destroyed before `before`, with every event of theirs at or below `eventSeq`: removed with all that hangs on them except money. */
  prune(before: number, eventSeq: number, limit: number): Promise<number>;
}
