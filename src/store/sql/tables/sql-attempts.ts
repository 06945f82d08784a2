import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { HostLoads } from '../../../core/hosts/host.ts';
import type { AttemptOutcome, AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { SetupLog } from '../../../core/lifecycle/setup-log.ts';
import type { AttemptStore } from '../../../core/ports/store/attempt-store.ts';
import { conflict } from '../../rejections.ts';
import { atMost } from '../session/at-most.ts';
import { readDocument, readDocumentOrNull, writeDocument, writeDocumentOrNull } from '../session/document.ts';
import { RowWriter } from '../session/row-writer.ts';
import type { AttemptRow, LoadRow, Schema, SetupLogRow } from '../session/schema.ts';
import { SeenRows } from '../session/seen-rows.ts';
import type { SqlSession } from '../session/sql-session.ts';
import { prepare } from '../session/statement.ts';

export function attemptStatements(db: Kysely<Schema>) {
  const loads = db
    .selectFrom('attempts')
    .select(({ fn }) => [
      'host_id',
      fn.countAll<number>().as('sandboxes'),
      fn.sum<number>('reserved_millicpu').as('millicpu'),
      fn.sum<number>('reserved_memory_mb').as('memory_mb'),
    ])
    // The condition is written exactly as in the partial index, so that the index is used.
    .where(sql<boolean>`state <> 'gone'`);
  return {
    rows: new RowWriter(db, 'attempts'),
    setupRows: new RowWriter(db, 'setup_logs'),
    setups: prepare<{ uid: string }, SetupLogRow>(({ uid }) =>
      db.selectFrom('setup_logs').selectAll().where('sandbox_uid', '=', uid),
    ),
    get: prepare<{ attemptId: string }, AttemptRow>(({ attemptId }) =>
      db.selectFrom('attempts').selectAll().where('attempt_id', '=', attemptId),
    ),
    forSandbox: prepare<{ uid: string }, AttemptRow>(({ uid }) =>
      db.selectFrom('attempts').selectAll().where('sandbox_uid', '=', uid).orderBy('generation').orderBy('n'),
    ),
    hostLoads: prepare<object, LoadRow>(() => loads.where('host_id', 'is not', null).groupBy('host_id')),
    hostLoad: prepare<{ hostId: string }, LoadRow>(({ hostId }) =>
      loads.where('host_id', '=', hostId).groupBy('host_id'),
    ),
    onHost: prepare<{ hostId: string; limit: number }, AttemptRow>(({ hostId, limit }) =>
      db
        .selectFrom('attempts')
        .selectAll()
        .where(sql<boolean>`state <> 'gone'`)
        .where('host_id', '=', hostId)
        .orderBy('started_at', 'desc')
        .orderBy('attempt_id', 'desc')
        .limit(atMost(limit)),
    ),
    recent: prepare<{ limit: number }, AttemptRow>(({ limit }) =>
      db
        .selectFrom((inner) =>
          inner
            .selectFrom('attempts')
            .selectAll()
            .select(({ fn }) =>
              fn
                .agg<number>('row_number')
                .over((over) =>
                  over
                    .partitionBy(['extension_id', 'host_id'])
                    .orderBy('started_at', 'desc')
                    .orderBy('attempt_id', 'desc'),
                )
                .as('place'),
            )
            .as('placed'),
        )
        .selectAll()
        .where('place', '<=', limit)
        .orderBy('started_at', 'desc')
        .orderBy('attempt_id', 'desc'),
    ),
  };
}

export class SqlAttempts implements AttemptStore {
  readonly #session: SqlSession;
  readonly #statements: ReturnType<typeof attemptStatements>;
  readonly #seen = new SeenRows<AttemptRow>();

  constructor(session: SqlSession, statements: ReturnType<typeof attemptStatements>) {
    this.#session = session;
    this.#statements = statements;
  }

  async get(attemptId: string): Promise<AttemptRecord | null> {
    const row = await this.#session.first(this.#statements.get, { attemptId });
    return row && this.#see(row);
  }

  async forSandbox(uid: string): Promise<readonly AttemptRecord[]> {
    return (await this.#session.all(this.#statements.forSandbox, { uid })).map((row) => this.#see(row));
  }

  async onHost(hostId: string, limit: number): Promise<readonly AttemptRecord[]> {
    return (await this.#session.all(this.#statements.onHost, { hostId, limit })).map(attemptRecord);
  }

  async recent(limit: number): Promise<readonly AttemptRecord[]> {
    return (await this.#session.all(this.#statements.recent, { limit })).map(attemptRecord);
  }

  async hostLoads(hostIds?: readonly string[]): Promise<HostLoads> {
    const rows =
      hostIds === undefined
        ? await this.#session.all(this.#statements.hostLoads, {})
        : (
            await Promise.all(
              hostIds.map((hostId) => this.#session.all(this.#statements.hostLoad, { hostId })),
            )
          ).flat();
    return Object.fromEntries(
      rows.map((row) => [
        row.host_id as string,
        { sandboxes: Number(row.sandboxes), millicpu: Number(row.millicpu), memoryMb: Number(row.memory_mb) },
      ]),
    );
  }

  async insert(record: AttemptRecord): Promise<void> {
    const row = attemptRow(record);
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw conflict(`The attempt ${record.attemptId} exists.`);
    this.#seen.set(row.attempt_id, row);
    this.#session.sandboxUids.add(record.sandboxUid);
  }

  async update(record: AttemptRecord): Promise<void> {
    this.#session.assertWritable();
    const row = attemptRow(record);
    const { attempt_id, sandbox_uid } = row;
    const there = await this.#seen.update(attempt_id, row, (changes) =>
      this.#session.change(this.#statements.rows.update(changes, { attempt_id, sandbox_uid })),
    );
    if (!there) throw conflict(`The attempt ${attempt_id} is gone.`);
    this.#session.sandboxUids.add(record.sandboxUid);
  }

  async putSetup(log: SetupLog): Promise<void> {
    const { attemptId, sandboxUid } = log;
    const row = { attempt_id: attemptId, sandbox_uid: sandboxUid, document: writeDocument(log) };
    await this.#session.change(this.#statements.setupRows.upsert(row, ['attempt_id']));
  }

  /** Rows of sandboxes that were removed, or may have been. */
  forgetSeen(): void {
    this.#seen.forgetAll();
  }

  #see(row: AttemptRow): AttemptRecord {
    this.#seen.set(row.attempt_id, row);
    return attemptRecord(row);
  }

  async setups(sandboxUid: string): Promise<readonly SetupLog[]> {
    const rows = await this.#session.all(this.#statements.setups, { uid: sandboxUid });
    return rows.map(({ document }) => readDocument<SetupLog>(document)).sort(inOrder);
  }
}

function inOrder(a: SetupLog, b: SetupLog): number {
  return a.generation - b.generation || a.n - b.n;
}

function attemptRow(record: AttemptRecord): AttemptRow {
  return {
    attempt_id: record.attemptId,
    sandbox_uid: record.sandboxUid,
    generation: record.generation,
    n: record.n,
    extension_id: record.extensionId,
    host_id: record.hostId,
    state: record.state,
    handle: writeDocumentOrNull(record.handle),
    creation: record.creation,
    error: writeDocumentOrNull(record.error),
    started_at: record.startedAt,
    provisioned_at: record.provisionedAt,
    ended_at: record.endedAt,
    judged_at: record.judged?.at ?? null,
    judged_as: record.judged?.outcome ?? null,
    judged_load: record.judged?.load ?? null,
    judged_own_ms: record.judged?.ownMs ?? null,
    teardown_tries: record.teardownTries,
    teardown_error: record.teardownError,
    stuck_since: record.stuckSince,
    hedge_at: record.hedgeAt,
    hedges: record.hedges,
    outrun_by: record.outrunBy,
    reserved_millicpu: record.reserved.millicpu,
    reserved_memory_mb: record.reserved.memoryMb,
    provider_key_id: record.providerKeyId,
  };
}

function judgement(row: AttemptRow): AttemptRecord['judged'] {
  if (row.judged_at === null) return null;
  return {
    at: row.judged_at,
    outcome: row.judged_as as AttemptOutcome,
    load: row.judged_load ?? 1,
    ownMs: row.judged_own_ms ?? 0,
  };
}

function attemptRecord(row: AttemptRow): AttemptRecord {
  return {
    attemptId: row.attempt_id,
    sandboxUid: row.sandbox_uid,
    generation: row.generation,
    n: row.n,
    extensionId: row.extension_id,
    hostId: row.host_id,
    reserved: { millicpu: row.reserved_millicpu, memoryMb: row.reserved_memory_mb },
    state: row.state as AttemptRecord['state'],
    handle: readDocumentOrNull(row.handle),
    creation: row.creation as AttemptRecord['creation'],
    error: readDocumentOrNull(row.error),
    startedAt: row.started_at,
    provisionedAt: row.provisioned_at,
    endedAt: row.ended_at,
    judged: judgement(row),
    teardownTries: row.teardown_tries,
    teardownError: row.teardown_error,
    stuckSince: row.stuck_since,
    hedgeAt: row.hedge_at,
    hedges: row.hedges,
    outrunBy: row.outrun_by,
    providerKeyId: row.provider_key_id,
  };
}
