import type { SandboxRecord } from '../../src/core/lifecycle/sandbox.ts';
import type { Tx } from '../../src/core/ports/store/store.ts';
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
      audit: this.#audit(),
    });
  }

  begin(): void {
    this.writes = [];
    this.touched = new Set();
  }

  /** The write, where it does not fail. A failing one ends its transaction, so it is noted before that is known. */
  #noted(write: Write, done: Promise<void>): Promise<void> {
    this.writes.push(write);
    return done;
  }

  async #seen(found: Promise<SandboxRecord | null>): Promise<SandboxRecord | null> {
    const row = await found;
    if (row !== null) this.touched.add(row.uid);
    return row;
  }

  #sandboxes(): Tx['sandboxes'] {
    const { sandboxes } = this.#inner;
    return delegate<Tx['sandboxes']>(sandboxes, {
      get: (uid) => {
        this.touched.add(uid);
        return sandboxes.get(uid);
      },
      find: (workspaceId, id) => this.#seen(sandboxes.find(workspaceId, id)),
      findReusable: (workspaceId, key) => this.#seen(sandboxes.findReusable(workspaceId, key)),
      insert: (row) => {
        this.touched.add(row.uid);
        return this.#noted({ table: 'sandbox', row }, sandboxes.insert(row));
      },
      update: async (row) => {
        const stored = await sandboxes.update(row);
        this.touched.add(row.uid);
        this.writes.push({ table: 'sandbox', row: stored });
        return stored;
      },
      insertDocuments: (documents) =>
        this.#noted({ table: 'documents', row: documents }, sandboxes.insertDocuments(documents)),
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
      insert: (row) => this.#noted({ table: 'attempt', row }, attempts.insert(row)),
      update: (row) => this.#noted({ table: 'attempt', row }, attempts.update(row)),
    });
  }

  #events(): Tx['events'] {
    const { events } = this.#inner;
    return delegate<Tx['events']>(events, {
      append: async (drafts) => {
        const rows = await events.append(drafts);
        for (const row of rows) this.writes.push({ table: 'event', row });
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
      setCursor: (cursor) => this.#noted({ table: 'cursor' }, outbox.setCursor(cursor)),
      park: (row) => this.#noted({ table: 'parked', row }, outbox.park(row)),
      unpark: (sinkId, seq) => this.#noted({ table: 'unparked', sinkId, seq }, outbox.unpark(sinkId, seq)),
    });
  }

  #audit(): Tx['audit'] {
    const { audit } = this.#inner;
    return delegate<Tx['audit']>(audit, {
      append: (drafts) => {
        for (const row of drafts) this.writes.push({ table: 'audit', row });
        return audit.append(drafts);
      },
    });
  }

  #idempotency(): Tx['idempotency'] {
    const { idempotency } = this.#inner;
    return delegate<Tx['idempotency']>(idempotency, {
      insert: (row) => this.#noted({ table: 'idempotency', row }, idempotency.insert(row)),
      prune: async (before, limit) => {
        const count = await idempotency.prune(before, limit);
        if (count > 0) this.writes.push({ table: 'keys-forgotten', keys: await this.#forgottenKeys() });
        return count;
      },
    });
  }

  #snapshots(): Tx['snapshots'] {
    const { snapshots } = this.#inner;
    return delegate<Tx['snapshots']>(snapshots, {
      insert: (row) => this.#noted({ table: 'snapshot', row }, snapshots.insert(row)),
      update: async (row) => {
        const stored = await snapshots.update(row);
        this.writes.push({ table: 'snapshot', row: stored });
        return stored;
      },
    });
  }

  #meters(): Tx['meters'] {
    const { meters } = this.#inner;
    return delegate<Tx['meters']>(meters, {
      insert: (row) => this.#noted({ table: 'meter', row }, meters.insert(row)),
      update: (row) => {
        this.touched.add(row.sandboxUid);
        return this.#noted({ table: 'meter', row }, meters.update(row));
      },
    });
  }

  #ledger(): Tx['ledger'] {
    const { ledger } = this.#inner;
    return delegate<Tx['ledger']>(ledger, {
      transfer: async (drafts) => {
        await ledger.transfer(drafts);
        for (const row of drafts) this.writes.push({ table: 'transfer', row });
      },
      insertHold: (row) => this.#noted({ table: 'hold', row }, ledger.insertHold(row)),
      updateHold: (row) => this.#noted({ table: 'hold', row }, ledger.updateHold(row)),
    });
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
      if (row.state === 'destroyed' && (await this.#inner.sandboxes.get(row.uid)) === null)
        gone.push(row.uid);
    }
    const kept = await this.#inner.events.list({
      workspaceId: null,
      after: 0,
      limit: Number.MAX_SAFE_INTEGER,
    });
    this.writes.push({
      table: 'forgotten',
      sandboxes: gone,
      keptEvents: new Set(kept.map(({ seq }) => seq)),
    });
  }
}

/** `inner` with some of its members replaced; all others are bound to it. */
function delegate<T extends object>(inner: T, over: Partial<T>): T {
  const names = new Set([...Object.keys(inner), ...Object.getOwnPropertyNames(Object.getPrototypeOf(inner))]);
  const members = [...names]
    .filter((name) => name !== 'constructor')
    .map((name) => {
      const member: unknown = Reflect.get(inner, name);
      return [name, typeof member === 'function' ? member.bind(inner) : member] as const;
    });
  return { ...Object.fromEntries(members), ...over } as T;
}
