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
    this.tx = delegate<Tx>(inner, {
      sandboxes: this.#sandboxes(),
      attempts: this.#attempts(),
      events: this.#events(),
      outbox: this.#outbox(),
      idempotency: this.#idempotency(),
      snapshots: this.#snapshots(),
      meters: this.#meters(),
      ledger: this.#ledger(),
    });
  }

  begin(): void {
    this.writes = [];
    this.touched = new Set();
  }

  #note(write: Write): void {
    this.writes.push(write);
  }

  #saw<T extends SandboxRecord | null>(row: T): T {
    if (row !== null) this.touched.add(row.uid);
    return row;
  }

  #sandboxes(): Tx['sandboxes'] {
    const { sandboxes } = this.#inner;
    return delegate<Tx['sandboxes']>(sandboxes, {
      get: async (uid) => this.#saw(await sandboxes.get(uid)),
      find: async (workspaceId, id) => this.#saw(await sandboxes.find(workspaceId, id)),
      findReusable: async (workspaceId, key) => this.#saw(await sandboxes.findReusable(workspaceId, key)),
      insert: async (row) => {
        await sandboxes.insert(row);
        this.touched.add(row.uid);
        this.#note({ table: 'sandbox', row });
      },
      update: async (row) => {
        const stored = await sandboxes.update(row);
        this.touched.add(row.uid);
        this.#note({ table: 'sandbox', row: stored });
        return stored;
      },
      insertDocuments: async (documents) => {
        await sandboxes.insertDocuments(documents);
        this.#note({ table: 'documents' });
      },
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
    });
  }

  #attempts(): Tx['attempts'] {
    const { attempts } = this.#inner;
    return delegate<Tx['attempts']>(attempts, {
      insert: async (row) => {
        await attempts.insert(row);
        this.#note({ table: 'attempt', row });
      },
      update: async (row) => {
        await attempts.update(row);
        this.#note({ table: 'attempt', row });
      },
    });
  }

  #events(): Tx['events'] {
    const { events } = this.#inner;
    return delegate<Tx['events']>(events, {
      append: async (drafts) => {
        const rows = await events.append(drafts);
        for (const row of rows) this.#note({ table: 'event', row });
        return rows;
      },
      prune: async (before, seq, limit) => {
        const count = await events.prune(before, seq, limit);
        if (count > 0) await this.#noteForgotten();
        return count;
      },
    });
  }

  #outbox(): Tx['outbox'] {
    const { outbox } = this.#inner;
    return delegate<Tx['outbox']>(outbox, {
      setCursor: async (cursor) => {
        await outbox.setCursor(cursor);
        this.#note({ table: 'cursor' });
      },
      park: async (row) => {
        await outbox.park(row);
        this.#note({ table: 'parked', row });
      },
      unpark: async (sinkId, seq) => {
        await outbox.unpark(sinkId, seq);
        this.#note({ table: 'unparked', sinkId, seq });
      },
    });
  }

  #idempotency(): Tx['idempotency'] {
    const { idempotency } = this.#inner;
    return delegate<Tx['idempotency']>(idempotency, {
      insert: async (row) => {
        await idempotency.insert(row);
        this.#note({ table: 'idempotency', row });
      },
      prune: async (before, limit) => {
        const count = await idempotency.prune(before, limit);
        if (count > 0) this.#note({ table: 'keys-forgotten', keys: await this.#forgottenKeys() });
        return count;
      },
    });
  }

  #snapshots(): Tx['snapshots'] {
    const { snapshots } = this.#inner;
    return delegate<Tx['snapshots']>(snapshots, {
      insert: async (row) => {
        await snapshots.insert(row);
        this.#note({ table: 'snapshot', row });
      },
      update: async (row) => {
        const stored = await snapshots.update(row);
        this.#note({ table: 'snapshot', row: stored });
        return stored;
      },
    });
  }

  #meters(): Tx['meters'] {
    const { meters } = this.#inner;
    return delegate<Tx['meters']>(meters, {
      insert: async (row) => {
        await meters.insert(row);
        this.#note({ table: 'meter', row });
      },
      update: async (row) => {
        await meters.update(row);
        this.touched.add(row.sandboxUid);
        this.#note({ table: 'meter', row });
      },
    });
  }

  #ledger(): Tx['ledger'] {
    const { ledger } = this.#inner;
    return delegate<Tx['ledger']>(ledger, {
      transfer: async (drafts) => {
        await ledger.transfer(drafts);
        for (const row of drafts) this.#note({ table: 'transfer', row });
      },
      insertHold: async (row) => {
        await ledger.insertHold(row);
        this.#note({ table: 'hold', row });
      },
      updateHold: async (row) => {
        await ledger.updateHold(row);
        this.#note({ table: 'hold', row });
      },
    });
  }

  async #noteReleased(): Promise<void> {
    for (const row of this.#mirror.unfinished.values()) {
      if (row.lease === null) continue;
      const stored = await this.#inner.sandboxes.get(row.uid);
      if (stored === null || stored.version === row.version) continue;
      this.touched.add(row.uid);
      this.#note({ table: 'sandbox', row: stored });
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
    this.#note({ table: 'forgotten', sandboxes: gone, keptEvents: new Set(kept.map(({ seq }) => seq)) });
  }
}

/** `inner` with some of its members replaced; all others are bound to it. */
function delegate<T extends object>(inner: T, over: Partial<T>): T {
  const names = new Set([...Object.keys(inner), ...Object.getOwnPropertyNames(Object.getPrototypeOf(inner))]);
  const members = [...names].filter((name) => name !== 'constructor').map((name) => {
    const member: unknown = Reflect.get(inner, name);
    return [name, typeof member === 'function' ? member.bind(inner) : member] as const;
  });
  return { ...Object.fromEntries(members), ...over } as T;
}
