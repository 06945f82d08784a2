/**
 * Defines the port to everything durable. Each method states what it promises; `store/` has an implementation for SQLite and one
 * in memory, and one suite tests them all.
 */

import type { ImageRecord } from '../../assets/image.ts';
import type { VolumeRecord } from '../../assets/volume.ts';
import type { KeyRecord } from '../../tenancy/tenancy.ts';
import type { AttemptStore } from './attempt-store.ts';
import type { AuditStore } from './audit-store.ts';
import type { CanaryStore } from './canary-store.ts';
import type { EventStore } from './event-store.ts';
import type { HostStore } from './host-store.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { KeptStore } from './kept-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { MeterStore } from './meter-store.ts';
import type { OutboxStore } from './outbox-store.ts';
import type { ProfileStore } from './profile-store.ts';
import type { ProviderKeyStore } from './provider-key-store.ts';
import type { QuoteStore } from './quote-store.ts';
import type { SandboxStore } from './sandbox-store.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import type { TenancyStore } from './tenancy-store.ts';
import type { UploadStore } from './upload-store.ts';
import type { WebhookStore } from './webhook-store.ts';

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

/** The changes of a commit, announced after it is durable. */
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
   * Whether it may resolve once it outlasts this process, before it outlasts the machine. Allowed only if, before a later
   * transaction has resolved, its result is not shown and no effect begins that goes on without this machine: the later
   * transaction makes both last. Listeners hear of it when it does.
   */
  readonly answersEarly?: (result: T) => boolean;
}

export interface ReadOptions {
  /** Whether it may resolve before what it saw outlasts the machine. Allowed only where nothing of it is shown. */
  readonly answersEarly?: boolean;
}

export interface Store {
  /** Whether only one process at a time uses the database: leases of other owners are then dead. */
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
