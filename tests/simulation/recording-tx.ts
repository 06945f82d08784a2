import type { SandboxRecord } from '../../src/core/sandbox.ts';
import type { Tx } from '../../src/core/store.ts';
import type { Mirror, Write } from './mirror.ts';

/** A transaction's view of the store that notes every write, and every sandbox that was looked at. */
export class RecordingTx {
  writes: Write[] = [];
  touched = new Set<string>();
  readonly tx: Tx;
  readonly #inner: Tx;
  readonly #mirror: Mirror;

  constructor(inner: Tx, mirror: Mirror) {
    this.#inner = inner;
    this.#mirror = mirror;
    this.tx = this.#wrap();
  }

  begin(): void {
    this.writes = [];
    this.touched = new Set();
  }

  #saw<T extends SandboxRecord | null>(row: T): T {
    if (row !== null) this.touched.add(row.uid);
    return row;
  }

  #wrap(): Tx {
    const { attempts, events, outbox, idempotency, snapshots, meters, ledger, profiles, tenancy } = this.#inner;
    const note = (write: Write) => this.writes.push(write);
    return {
      sandboxes: this.#sandboxes(),
      attempts: {
        get: (id) => attempts.get(id),
        forSandbox: (uid) => attempts.forSandbox(uid),
        insert: async (row) => {
          await attempts.insert(row);
          note({ table: 'attempt', row });
        },
        update: async (row) => {
          await attempts.update(row);
          note({ table: 'attempt', row });
        },
      },
      events: {
        append: async (drafts) => {
          const rows = await events.append(drafts);
          for (const row of rows) note({ table: 'event', row });
          return rows;
        },
        list: (query) => events.list(query),
        lastSeq: () => events.lastSeq(),
        prune: async (before, seq, limit) => {
          const count = await events.prune(before, seq, limit);
          if (count > 0) await this.#noteForgotten();
          return count;
        },
      },
      outbox: {
        cursor: (sinkId) => outbox.cursor(sinkId),
        setCursor: async (cursor) => {
          await outbox.setCursor(cursor);
          note({ table: 'cursor' });
        },
        removeSink: (sinkId) => outbox.removeSink(sinkId),
        minCursor: () => outbox.minCursor(),
        parked: (sinkId) => outbox.parked(sinkId),
        park: async (row) => {
          await outbox.park(row);
          note({ table: 'parked', row });
        },
        unpark: async (sinkId, seq) => {
          await outbox.unpark(sinkId, seq);
          note({ table: 'unparked', sinkId, seq });
        },
      },
      idempotency: {
        get: (workspaceId, key) => idempotency.get(workspaceId, key),
        insert: async (row) => {
          await idempotency.insert(row);
          note({ table: 'idempotency', row });
        },
        prune: async (before, limit) => {
          const count = await idempotency.prune(before, limit);
          if (count > 0) note({ table: 'keys-forgotten', keys: await this.#forgottenKeys() });
          return count;
        },
      },
      snapshots: {
        get: (id) => snapshots.get(id),
        insert: async (row) => {
          await snapshots.insert(row);
          note({ table: 'snapshot', row });
        },
        update: async (row) => {
          const stored = await snapshots.update(row);
          note({ table: 'snapshot', row: stored });
          return stored;
        },
        list: (query) => snapshots.list(query),
        dueDeletion: (now, limit) => snapshots.dueDeletion(now, limit),
        prune: (before, limit) => snapshots.prune(before, limit),
      },
      meters: {
        get: (id) => meters.get(id),
        insert: async (row) => {
          await meters.insert(row);
          note({ table: 'meter', row });
        },
        update: async (row) => {
          await meters.update(row);
          this.touched.add(row.sandboxUid);
          note({ table: 'meter', row });
        },
        forSandbox: (uid) => meters.forSandbox(uid),
        openSince: (before, limit) => meters.openSince(before, limit),
      },
      ledger: {
        transfer: async (drafts) => {
          await ledger.transfer(drafts);
          for (const row of drafts) note({ table: 'transfer', row });
        },
        getTransfer: (id) => ledger.getTransfer(id),
        balance: (account) => ledger.balance(account),
        granted: (workspaceId) => ledger.granted(workspaceId),
        held: (holdId) => ledger.held(holdId),
        insertHold: async (row) => {
          await ledger.insertHold(row);
          note({ table: 'hold', row });
        },
        getHold: (id) => ledger.getHold(id),
        updateHold: async (row) => {
          await ledger.updateHold(row);
          note({ table: 'hold', row });
        },
        transfers: (query) => ledger.transfers(query),
      },
      profiles,
      tenancy,
      setting: (name) => this.#inner.setting(name),
      setSetting: (name, value) => this.#inner.setSetting(name, value),
    };
  }

  #sandboxes(): Tx['sandboxes'] {
    const { sandboxes } = this.#inner;
    return {
      get: async (uid) => this.#saw(await sandboxes.get(uid)),
      find: async (workspaceId, id) => this.#saw(await sandboxes.find(workspaceId, id)),
      findReusable: async (workspaceId, key) => this.#saw(await sandboxes.findReusable(workspaceId, key)),
      insert: async (row) => {
        await sandboxes.insert(row);
        this.touched.add(row.uid);
        this.writes.push({ table: 'sandbox', row });
      },
      update: async (row) => {
        const stored = await sandboxes.update(row);
        this.touched.add(row.uid);
        this.writes.push({ table: 'sandbox', row: stored });
        return stored;
      },
      documents: (uid, generation) => sandboxes.documents(uid, generation),
      insertDocuments: async (documents) => {
        await sandboxes.insertDocuments(documents);
        this.writes.push({ table: 'documents' });
      },
      list: (query) => sandboxes.list(query),
      countLiving: (workspaceId) => sandboxes.countLiving(workspaceId),
      dueWork: (now, limit) => sandboxes.dueWork(now, limit),
      dueDeadlines: (now, limit) => sandboxes.dueDeadlines(now, limit),
      dueIdle: (now, limit) => sandboxes.dueIdle(now, limit),
      nextDueAt: () => sandboxes.nextDueAt(),
      establishedOn: (extensionId, afterUid, limit) => sandboxes.establishedOn(extensionId, afterUid, limit),
      releaseForeignLeases: async (owner, now) => {
        const count = await sandboxes.releaseForeignLeases(owner, now);
        if (count > 0) await this.#noteReleased();
        return count;
      },
      prune: async (before, seq, limit) => {
        const count = await sandboxes.prune(before, seq, limit);
        if (count > 0) await this.#noteForgotten();
        return count;
      },
    };
  }

  async #noteReleased(): Promise<void> {
    for (const row of this.#mirror.unfinished.values()) {
      if (row.lease === null) continue;
      const stored = await this.#inner.sandboxes.get(row.uid);
      if (stored === null || stored.version === row.version) continue;
      this.touched.add(row.uid);
      this.writes.push({ table: 'sandbox', row: stored });
    }
  }

  async #forgottenKeys(): Promise<string[]> {
    const keys: string[] = [];
    for (const [key, row] of this.#mirror.idempotency) {
      if ((await this.#inner.idempotency.get(row.workspaceId, row.key)) === null) keys.push(key);
    }
    return keys;
  }

  async #noteForgotten(): Promise<void> {
    const gone: string[] = [];
    for (const row of this.#mirror.sandboxes.values()) {
      if (row.state === 'destroyed' && (await this.#inner.sandboxes.get(row.uid)) === null) gone.push(row.uid);
    }
    const kept = await this.#inner.events.list({ workspaceId: null, after: 0, limit: Number.MAX_SAFE_INTEGER });
    this.writes.push({ table: 'forgotten', sandboxes: gone, keptEvents: new Set(kept.map(({ seq }) => seq)) });
  }
}
