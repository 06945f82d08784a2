import { Mutex } from '../../async/mutex.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { CommitListeners } from '../commit-listeners.ts';
import { MemoryAttempts } from './memory-attempts.ts';
import { MemoryAudit } from './memory-audit.ts';
import { MemoryCanaries } from './memory-canaries.ts';
import { MemoryEvents } from './memory-events.ts';
import { MemoryHosts } from './memory-hosts.ts';
import { MemoryIdempotency } from './memory-idempotency.ts';
import { MemoryJournal } from './memory-journal.ts';
import { MemoryKept } from './memory-kept.ts';
import { MemoryLedger } from './memory-ledger.ts';
import { MemoryMeters } from './memory-meters.ts';
import { MemoryOutbox } from './memory-outbox.ts';
import { MemoryProfiles } from './memory-profiles.ts';
import { MemoryProviderKeys } from './memory-provider-keys.ts';
import { MemoryQuotes } from './memory-quotes.ts';
import { MemorySandboxes } from './memory-sandboxes.ts';
import { MemorySnapshots } from './memory-snapshots.ts';
import { MemoryTable } from './memory-table.ts';
import { MemoryTenancy } from './memory-tenancy.ts';
import { MemoryUploads } from './memory-uploads.ts';
import { MemoryWebhooks } from './memory-webhooks.ts';

/** The state that outlives the processes: each of them sees it through its own `MemoryStore`. */
export interface MemoryDatabase {
  readonly tx: Tx;
  readonly journal: MemoryJournal;
  /** Held while the work of a transaction or a read runs, and never while anything else is waited for. */
  readonly mutex: Mutex;
  readonly listeners: CommitListeners;
  /** Returns every row of the ledger, which balances must be sums of. */
  transfers(): readonly TransferRecord[];
}

export function memoryDatabase(): MemoryDatabase {
  const journal = new MemoryJournal();
  const outbox = new MemoryOutbox(journal);
  const events = new MemoryEvents(journal, () => outbox.parkedSeqs());
  const attempts = new MemoryAttempts(journal);
  const sandboxes = new MemorySandboxes(journal, {
    eventsOf: (uid) => events.ofSandbox(uid),
    parkedSeqs: () => outbox.parkedSeqs(),
    removeOf(uids) {
      events.removeOf(uids);
      for (const uid of uids) attempts.removeOf(uid);
    },
  });
  const snapshots = new MemorySnapshots(journal);
  const ledger = new MemoryLedger(journal);
  const settings = new MemoryTable<string>(journal);
  const tx: Tx = {
    sandboxes,
    attempts,
    events,
    outbox,
    idempotency: new MemoryIdempotency(journal),
    snapshots,
    meters: new MemoryMeters(journal),
    ledger,
    profiles: new MemoryProfiles(journal),
    tenancy: new MemoryTenancy(journal),
    quotes: new MemoryQuotes(journal),
    hosts: new MemoryHosts(journal),
    canaries: new MemoryCanaries(journal),
    webhooks: new MemoryWebhooks(journal),
    providerKeys: new MemoryProviderKeys(journal, (id) => attempts.useKey(id) || snapshots.useKey(id)),
    audit: new MemoryAudit(journal),
    uploads: new MemoryUploads(journal, async (uid) => {
      const sandbox = await sandboxes.get(uid);
      return sandbox !== null && sandbox.state !== 'destroyed';
    }),
    images: new MemoryKept(journal, 'image'),
    volumes: new MemoryKept(journal, 'volume'),
    setting: async (name) => settings.get(name) ?? null,
    setSetting: async (name, value) => {
      journal.assertWritable();
      settings.set(name, value);
    },
  };
  return {
    tx,
    journal,
    mutex: new Mutex(),
    listeners: new CommitListeners(),
    transfers: () => ledger.rows(),
  };
}
