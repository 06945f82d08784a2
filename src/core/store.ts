/**
 * Where everything durable lives. Each method states what it promises; `store/` has an implementation for SQLite and
 * one in memory, and one suite tests them all.
 */

import type { Profile } from '../contract/profile.ts';
import type { SandboxState } from '../contract/state.ts';
import type { AttemptRecord } from './attempt.ts';
import type { AuditDraft, AuditRecord } from './audit.ts';
import type { CanaryRecord } from './canary.ts';
import type { GrantRecord } from './credits/grant.ts';
import type { MoneyPolicy } from './credits/policy.ts';
import type { HoldRecord, TransferDraft, TransferKind, TransferRecord } from './credits/transfer.ts';
import type { EventDraft, EventRecord } from './event.ts';
import type { HostLoads, HostRecord, HostSample } from './host.ts';
import type { ImageRecord } from './image.ts';
import type { KeptResource } from './kept-resource.ts';
import type { MeterRecord } from './meter.ts';
import type { ProviderKeyRecord } from './provider-key.ts';
import type { QuoteRecord } from './quote.ts';
import type { SandboxDocuments, SandboxRecord } from './sandbox.ts';
import type { SetupLog } from './setup-log.ts';
import type { SnapshotRecord } from './snapshot.ts';
import type { KeyRecord, OrgRecord, WorkspaceRecord } from './tenancy.ts';
import type { UploadRecord } from './upload.ts';
import type { VolumeRecord } from './volume.ts';
import type { WebhookRecord } from './webhook.ts';

export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it back to go on; `null` at the end. */
  readonly nextCursor: string | null;
}

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
   * By uid, or by public id: the row that is not destroyed, else the one created last. With `workspaceId: null`, an id
   * that several workspaces have is not found.
   */
  find(workspaceId: string | null, idOrUid: string): Promise<SandboxRecord | null>;
  findReusable(workspaceId: string, reuseKey: string): Promise<SandboxRecord | null>;
  /** Rejects with `SBX_ID_TAKEN` when a row of (workspace, id) is not destroyed, and with `SBX_CONFLICT` when the reuse key does. */
  insert(record: SandboxRecord): Promise<void>;
  /** Compare-and-set on `record.version`, which is the version that was read. Answers the stored row (version + 1). */
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

export interface AttemptStore {
  get(attemptId: string): Promise<AttemptRecord | null>;
  forSandbox(uid: string): Promise<readonly AttemptRecord[]>;
  /** What is reserved and running on each host, or on these: sums over the attempts that are not gone. */
  hostLoads(hostIds?: readonly string[]): Promise<HostLoads>;
  /** On that host and not gone, newest first. */
  onHost(hostId: string, limit: number): Promise<readonly AttemptRecord[]>;
  /** The last `limit` of each backend on each host, newest first. */
  recent(limit: number): Promise<readonly AttemptRecord[]>;
  insert(record: AttemptRecord): Promise<void>;
  update(record: AttemptRecord): Promise<void>;
  /** Replaces the one of the same attempt: setup runs again after a crash. It goes with its sandbox. */
  putSetup(log: SetupLog): Promise<void>;
  /** In the order of the attempts. */
  setups(sandboxUid: string): Promise<readonly SetupLog[]>;
}

export interface HostStore {
  get(id: string): Promise<HostRecord | null>;
  /** By id. */
  list(): Promise<readonly HostRecord[]>;
  insert(record: HostRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: HostRecord): Promise<HostRecord>;
  remove(id: string): Promise<void>;
  /** Replaces the one of the same host, kind and time. */
  addSample(sample: HostSample): Promise<void>;
  /** Newest first. */
  samples(hostId: string, kind: HostSample['kind'], limit: number): Promise<readonly HostSample[]>;
  pruneSamples(before: number, limit: number): Promise<number>;
}

export interface CanaryStore {
  get(attemptId: string): Promise<CanaryRecord | null>;
  /** By attempt. */
  list(): Promise<readonly CanaryRecord[]>;
  insert(record: CanaryRecord): Promise<void>;
  remove(attemptId: string): Promise<void>;
}

export interface QuoteStore {
  get(id: string): Promise<QuoteRecord | null>;
  insert(quote: QuoteRecord): Promise<void>;
  /** Removes those that expired before, oldest first; answers how many. */
  prune(before: number, limit: number): Promise<number>;
}

export interface EventQuery {
  readonly workspaceId: string | null;
  readonly sandboxUid?: string;
  readonly types?: readonly string[];
  readonly after: number;
  /** Newest first, of those with a smaller number. Left out: oldest first. */
  readonly before?: number;
  readonly limit: number;
}

export interface EventStore {
  /** Numbers and writes them. What `list` shows is a stable prefix: no smaller number appears later. */
  append(drafts: readonly EventDraft[]): Promise<readonly EventRecord[]>;
  list(query: EventQuery): Promise<readonly EventRecord[]>;
  lastSeq(): Promise<number>;
  /** Removes events before `before` that lie at or below `seq`. */
  prune(before: number, seq: number, limit: number): Promise<number>;
}

/** How far a sink has read the outbox. Events at or below the cursor are delivered or parked. */
export interface SinkCursor {
  readonly sinkId: string;
  readonly cursor: number;
}

/** An event that a sink did not take yet. Later events of the same subject wait behind it. */
export interface ParkedDelivery {
  readonly sinkId: string;
  readonly seq: number;
  readonly subject: string;
  readonly tries: number;
  /** When it is tried again; of a dead one, when it was given up. */
  readonly nextAt: number;
  readonly lastError: string;
  /** Given up: visible, replayable, and no longer in the way of others. */
  readonly dead: boolean;
}

/** A sink as the store knows it. */
export interface SinkState extends SinkCursor {
  /** Somebody delivers to it: what it has not read is kept. */
  readonly active: boolean;
  /** When it last took an event. */
  readonly takenAt: number | null;
}

export interface ParkedQuery {
  readonly sinkId: string;
  readonly dead?: boolean;
  readonly after: number;
  readonly limit: number;
}

export interface ParkedCounts {
  readonly waiting: number;
  readonly dead: number;
  /** Dead ones that were given up after `since`. */
  readonly deadSince: number;
  /** Of the delivery that failed most often; `null` when none failed. */
  readonly lastError: string | null;
}

export interface OutboxStore {
  cursor(sinkId: string): Promise<number | null>;
  /** A new sink is active. */
  setCursor(cursor: SinkCursor): Promise<void>;
  sink(sinkId: string): Promise<SinkState | null>;
  /** By id. */
  sinks(): Promise<readonly SinkState[]>;
  setActive(sinkId: string, active: boolean): Promise<void>;
  setTaken(sinkId: string, at: number): Promise<void>;
  removeSink(sinkId: string): Promise<void>;
  /** Of the active sinks. */
  minCursor(): Promise<number | null>;
  parked(sinkId: string): Promise<readonly ParkedDelivery[]>;
  /** The parked ones that are not dead, in order. */
  waiting(sinkId: string): Promise<readonly ParkedDelivery[]>;
  parkedPage(query: ParkedQuery): Promise<readonly ParkedDelivery[]>;
  parkedCounts(sinkId: string, since: number): Promise<ParkedCounts>;
  /** Removes dead deliveries that were given up before `before`. */
  pruneDead(before: number, limit: number): Promise<number>;
  park(delivery: ParkedDelivery): Promise<void>;
  unpark(sinkId: string, seq: number): Promise<void>;
}

export interface IdempotencyRecord {
  readonly workspaceId: string;
  readonly key: string;
  readonly requestDigest: string;
  /** `sandbox:<uid>` or `snapshot:<id>`. */
  readonly result: string;
  readonly createdAt: number;
}

export interface IdempotencyStore {
  get(workspaceId: string, key: string): Promise<IdempotencyRecord | null>;
  insert(record: IdempotencyRecord): Promise<void>;
  prune(before: number, limit: number): Promise<number>;
}

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
  /** How many a workspace has that are not deleted, and how large they are together. */
  usage(workspaceId: string): Promise<{ readonly count: number; readonly bytes: number }>;
  /** Forgets those that were deleted before. */
  prune(before: number, limit: number): Promise<number>;
}

export interface UploadQuery {
  readonly workspaceId: string | null;
  readonly cursor?: string | null;
  readonly limit: number;
}

export interface UploadStore {
  get(id: string): Promise<UploadRecord | null>;
  /** Inserts, or moves the expiry of the one that is there to the later time. Answers the stored row. */
  put(record: UploadRecord): Promise<UploadRecord>;
  /** A sandbox is made from it: it stays until that is destroyed. Repeating it is harmless. */
  use(uploadId: string, sandboxUid: string): Promise<void>;
  /** Whether a sandbox that is not destroyed was made from it. */
  inUse(id: string): Promise<boolean>;
  /** Newest first. */
  list(query: UploadQuery): Promise<Page<UploadRecord>>;
  /** Bytes of all uploads of a workspace: derived, never a counter. */
  totalBytes(workspaceId: string): Promise<number>;
  /** Past `expiresAt` and not in use, oldest first. */
  due(now: number, limit: number): Promise<readonly UploadRecord[]>;
  /** With everything that says it was used. */
  remove(id: string): Promise<void>;
}

export interface MeterStore {
  get(id: string): Promise<MeterRecord | null>;
  insert(record: MeterRecord): Promise<void>;
  update(record: MeterRecord): Promise<void>;
  forSandbox(uid: string): Promise<readonly MeterRecord[]>;
  /** Open, with a rate above zero, last rebased before `before`. */
  openSince(before: number, limit: number): Promise<readonly MeterRecord[]>;
  /** Open, with `fundAt ≤ now`, oldest first. */
  dueFunding(now: number, limit: number): Promise<readonly MeterRecord[]>;
  /** The earliest `fundAt` of an open one; `null` when there is none. */
  nextFundingAt(): Promise<number | null>;
  /** Open ones, by id, after `afterId`. */
  open(afterId: string | null, limit: number): Promise<readonly MeterRecord[]>;
}

export interface TransferQuery {
  readonly workspaceId: string | null;
  readonly kinds?: readonly TransferKind[];
  /** From this time on, and before that one. */
  readonly from?: number;
  readonly to?: number;
  readonly after: number;
  /** Those before it, the newest first; when left out, the oldest first. */
  readonly before?: number;
  readonly limit: number;
}

/** What a budget has told and admitted, by its mark. */
export interface BudgetState {
  readonly mark: string;
  readonly told: number;
  readonly admittedAt: number;
}

/**
 * Transfers are written once, in a chain of hashes, and never changed. Balances and what a hold has left are kept with
 * them, in the same transaction: they are what adding up the rows gives, without adding up.
 */
export interface LedgerStore {
  /** Rejects with `SBX_CONFLICT` when a transfer id exists. All of them or none. */
  transfer(drafts: readonly TransferDraft[]): Promise<void>;
  getTransfer(id: string): Promise<TransferRecord | null>;
  /** Credits minus debits. */
  balance(account: string): Promise<number>;
  /** Every account whose balance is not zero, by name. */
  balances(): Promise<readonly { readonly account: string; readonly balance: number }[]>;
  /** Sums of the kinds that bring money to a workspace or take it away unspent. */
  funding(workspaceId: string): Promise<ReadonlyMap<TransferKind, number>>;
  insertHold(hold: HoldRecord): Promise<void>;
  getHold(id: string): Promise<HoldRecord | null>;
  updateHold(hold: HoldRecord): Promise<void>;
  /** By id, after `afterId`. */
  openHolds(afterId: string | null, limit: number): Promise<readonly HoldRecord[]>;
  transfers(query: TransferQuery): Promise<readonly TransferRecord[]>;
  insertGrant(grant: GrantRecord): Promise<void>;
  updateGrant(grant: GrantRecord): Promise<void>;
  /** Of a purse, not ended, oldest first. */
  liveGrants(purse: string): Promise<readonly GrantRecord[]>;
  /** Not ended, with `expiresAt ≤ now`. */
  dueGrants(now: number, limit: number): Promise<readonly GrantRecord[]>;
  /** `null` where nothing was decided. */
  policy(workspaceId: string): Promise<MoneyPolicy | null>;
  setPolicy(policy: MoneyPolicy): Promise<void>;
  budgetState(mark: string): Promise<BudgetState | null>;
  setBudgetState(state: BudgetState): Promise<void>;
}

export interface PushedProfile {
  readonly workspaceId: string;
  readonly profile: Profile;
  /** The document as it was sent: what the profile is rebuilt from when the schema grows. */
  readonly source: Readonly<Record<string, unknown>>;
  readonly createdAt: number;
}

export interface ProfileStore {
  get(workspaceId: string, id: string, version: string): Promise<PushedProfile | null>;
  insert(profile: PushedProfile): Promise<void>;
  list(workspaceId: string | null): Promise<readonly PushedProfile[]>;
}

export interface TenancyStore {
  org(id: string): Promise<OrgRecord | null>;
  insertOrg(org: OrgRecord): Promise<void>;
  updateOrg(org: OrgRecord): Promise<void>;
  /** By id, the deleted ones too: an id is never given twice. */
  orgs(): Promise<readonly OrgRecord[]>;
  workspace(id: string): Promise<WorkspaceRecord | null>;
  insertWorkspace(workspace: WorkspaceRecord): Promise<void>;
  updateWorkspace(workspace: WorkspaceRecord): Promise<void>;
  workspaces(orgId: string | null): Promise<readonly WorkspaceRecord[]>;
  key(id: string): Promise<KeyRecord | null>;
  keyByHash(secretHash: string): Promise<KeyRecord | null>;
  keyByNumber(number: number): Promise<KeyRecord | null>;
  /** The highest number that a key has; 0 when there is none. */
  lastKeyNumber(): Promise<number>;
  insertKey(key: KeyRecord): Promise<void>;
  updateKey(key: KeyRecord): Promise<void>;
  keys(workspaceId: string | null): Promise<readonly KeyRecord[]>;
}

export interface WebhookStore {
  get(id: string): Promise<WebhookRecord | null>;
  insert(record: WebhookRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: WebhookRecord): Promise<WebhookRecord>;
  remove(id: string): Promise<void>;
  /** Oldest first. */
  list(workspaceId: string | null): Promise<readonly WebhookRecord[]>;
}

export interface ProviderKeyStore {
  get(id: string): Promise<ProviderKeyRecord | null>;
  /** The workspace's own, and the platform's before them. */
  usableBy(workspaceId: string): Promise<readonly ProviderKeyRecord[]>;
  /** The platform's first, then by workspace; by extension within each. */
  list(): Promise<readonly ProviderKeyRecord[]>;
  /** Rejects with `SBX_CONFLICT` where the workspace, or the platform, has one for that backend. */
  insert(record: ProviderKeyRecord): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: ProviderKeyRecord): Promise<ProviderKeyRecord>;
  remove(id: string): Promise<void>;
  /** Whether an attempt that is not gone, or a snapshot that is kept, was made with it. */
  isUsed(id: string): Promise<boolean>;
}

/** Images, or volumes. */
export interface KeptStore<R extends KeptResource> {
  get(id: string): Promise<R | null>;
  insert(record: R): Promise<void>;
  /** Compare-and-set like sandboxes. */
  update(record: R): Promise<R>;
  remove(id: string): Promise<void>;
  /** Oldest first: the workspace's own and the shared ones, or all with `null`. */
  list(workspaceId: string | null): Promise<readonly R[]>;
  /** `deleting`, or past `expiresAt`. */
  due(now: number, limit: number): Promise<readonly R[]>;
}

export interface AuditQuery {
  /** `null` sees every workspace. */
  readonly workspaceId: string | null;
  readonly keyId?: string;
  readonly action?: string;
  readonly target?: string;
  /** Only records with a smaller number. */
  readonly before?: number;
  readonly limit: number;
}

/** Rows are written once and never changed. */
export interface AuditStore {
  append(drafts: readonly AuditDraft[]): Promise<void>;
  /** Newest first. */
  list(query: AuditQuery): Promise<readonly AuditRecord[]>;
  prune(before: number, limit: number): Promise<number>;
}

export interface Tx {
  readonly sandboxes: SandboxStore;
  readonly attempts: AttemptStore;
  readonly events: EventStore;
  readonly outbox: OutboxStore;
  readonly idempotency: IdempotencyStore;
  readonly snapshots: SnapshotStore;
  readonly meters: MeterStore;
  readonly ledger: LedgerStore;
  readonly profiles: ProfileStore;
  readonly tenancy: TenancyStore;
  readonly quotes: QuoteStore;
  readonly hosts: HostStore;
  readonly canaries: CanaryStore;
  readonly webhooks: WebhookStore;
  readonly providerKeys: ProviderKeyStore;
  readonly audit: AuditStore;
  readonly uploads: UploadStore;
  readonly images: KeptStore<ImageRecord>;
  readonly volumes: KeptStore<VolumeRecord>;
  /** Small facts about the installation itself, such as its id. */
  setting(name: string): Promise<string | null>;
  setSetting(name: string, value: string): Promise<void>;
}

/** What a commit touched, told after it is durable. */
export interface CommitNotice {
  readonly sandboxUids: ReadonlySet<string>;
  /** Highest event number of the commit; 0 when it wrote none. */
  readonly lastSeq: number;
  /** The keys that it changed, as they are now. */
  readonly keys: readonly KeyRecord[];
  /** The workspaces that it deleted. */
  readonly deletedWorkspaces: readonly string[];
  /** The earliest `fundAt` that it wrote on a meter; `null` when it wrote none. */
  readonly fundAt: number | null;
}

export interface TransactionOptions<T> {
  /**
   * Whether it may resolve once it outlasts this process, before it outlasts the machine. Only where nothing is told to
   * anybody, and nothing done that goes on without this machine, before a later transaction has resolved: that one makes
   * both last. Listeners hear of it when it does.
   */
  readonly answersEarly?: (result: T) => boolean;
}

export interface ReadOptions {
  /** Whether it may resolve before what it saw outlasts the machine. Only where nothing of that is told to anybody. */
  readonly answersEarly?: boolean;
}

export interface Store {
  /** One process at a time: leases of other owners are dead. */
  readonly exclusive: boolean;
  /**
   * Serialisable and, unless it answers early, durable when it resolves; nothing of it is seen before, and nothing remains when `work` rejects.
   * `work` awaits nothing but `tx` and may be run again from the start when the database asks for it.
   * `label` names it in traces and to the simulation.
   */
  transaction<T>(label: string, work: (tx: Tx) => Promise<T>, options?: TransactionOptions<T>): Promise<T>;
  /** A consistent view; writes reject. */
  read<T>(label: string, work: (tx: Tx) => Promise<T>, options?: ReadOptions): Promise<T>;
  onCommit(listener: (notice: CommitNotice) => void): () => void;
  close(): Promise<void>;
}
