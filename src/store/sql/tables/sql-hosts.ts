import type { Kysely } from 'kysely';
import type { HostRecord, HostSample } from '../../../core/hosts/host.ts';
import type { HostStore } from '../../../core/ports/store/host-store.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, writeDocument } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { HostRow, HostSampleRow, Schema } from '../session/schema.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function hostStatements(db: Kysely<Schema>) {
  const all = db.selectFrom('hosts').selectAll().orderBy('id');
  const samples = db.selectFrom('host_samples').selectAll();
  return {
    rows: new RowWriter(db, 'hosts'),
    sampleRows: new RowWriter(db, 'host_samples'),
    get: prepare<{ id: string }, HostRow>(({ id }) => all.where('id', '=', id)),
    all: prepare<object, HostRow>(() => all),
    remove: prepare<{ id: string }, unknown>(({ id }) => db.deleteFrom('hosts').where('id', '=', id)),
    samples: prepare<{ hostId: string; kind: string; limit: number }, HostSampleRow>(
      ({ hostId, kind, limit }) =>
        samples
          .where('host_id', '=', hostId)
          .where('kind', '=', kind)
          .orderBy('at', 'desc')
          .limit(atMost(limit)),
    ),
    oldSamples: prepare<{ before: number; limit: number }, HostSampleRow>(({ before, limit }) =>
      samples.where('at', '<', before).orderBy('at').limit(atMost(limit)),
    ),
    removeSample: prepare<{ hostId: string; kind: string; at: number }, unknown>(({ hostId, kind, at }) =>
      db
        .deleteFrom('host_samples')
        .where('host_id', '=', hostId)
        .where('kind', '=', kind)
        .where('at', '=', at),
    ),
  };
}

export class SqlHosts implements HostStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof hostStatements>;

  constructor(session: SqlSession, statements: ReturnType<typeof hostStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(id: string): Promise<HostRecord | null> {
    const row = await this.#session.first(this.#statements.get, { id });
    return row && hostRecord(row);
  }

  async list(): Promise<readonly HostRecord[]> {
    return (await this.#session.all(this.#statements.all, {})).map(hostRecord);
  }

  async insert(record: HostRecord): Promise<void> {
    const inserted = await this.#session.change(this.#statements.rows.insert(hostRow(record)));
    if (inserted === 0) throw conflict(`The host ${record.id} exists.`);
  }

  async update(record: HostRecord): Promise<HostRecord> {
    const next = { ...record, version: record.version + 1 };
    const { id, ...rest } = hostRow(next);
    const updated = await this.#session.change(
      this.#statements.rows.update(rest, { id, version: record.version }),
    );
    if (updated === 0) throw conflict(`The host ${id} was changed.`);
    return next;
  }

  async remove(id: string): Promise<void> {
    await this.#session.run(this.#statements.remove, { id });
  }

  async addSample({ hostId, kind, at, data }: HostSample): Promise<void> {
    const row = { host_id: hostId, kind, at, data: writeDocument(data) };
    await this.#session.change(this.#statements.sampleRows.upsert(row, ['host_id', 'kind', 'at']));
  }

  async samples(hostId: string, kind: HostSample['kind'], limit: number): Promise<readonly HostSample[]> {
    const rows = await this.#session.all(this.#statements.samples, { hostId, kind, limit });
    return rows.map((row) => ({ hostId, kind, at: row.at, data: readDocument(row.data) }));
  }

  async pruneSamples(before: number, limit: number): Promise<number> {
    const rows = await this.#session.all(this.#statements.oldSamples, { before, limit });
    for (const { host_id: hostId, kind, at } of rows)
      await this.#session.run(this.#statements.removeSample, { hostId, kind, at });
    return rows.length;
  }
}

function hostRow(record: HostRecord): HostRow {
  return {
    id: record.id,
    version: record.version,
    source: record.source,
    spec: writeDocument(record.spec),
    state: record.state,
    health: writeDocument(record.health),
    created_at: record.createdAt,
  };
}

function hostRecord(row: HostRow): HostRecord {
  return {
    id: row.id,
    version: row.version,
    source: row.source as HostRecord['source'],
    spec: readDocument(row.spec),
    state: row.state as HostRecord['state'],
    health: readDocument(row.health),
    createdAt: row.created_at,
  };
}
