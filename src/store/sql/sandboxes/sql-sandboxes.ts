import type { SandboxState } from '../../../contract/values/state.ts';
import type { SandboxDocuments, SandboxRecord } from '../../../core/lifecycle/sandbox.ts';
import type { Page } from '../../../core/ports/store/page.ts';
import type { SandboxQuery, SandboxStore } from '../../../core/ports/store/sandbox-store.ts';
import { decodeCursor, encodeCursor } from '../../page-cursor.ts';
import { conflict, idTaken } from '../../rejections.ts';
import { withoutLease } from '../../sandbox-watch.ts';
import type { SandboxRow } from '../session/schema.ts';
import { SeenRows } from '../session/seen-rows.ts';
import type { SqlSession } from '../session/sql-session.ts';
import type { Statement } from '../session/statement.ts';
import { sandboxPage } from './sandbox-page.ts';
import { documentsRecord, documentsRow, sandboxRecord, sandboxRow } from './sandbox-row.ts';
import type { SandboxStatements } from './sandbox-statements.ts';

export class SqlSandboxes implements SandboxStore {
  readonly #session: SqlSession;
  readonly #statements: SandboxStatements;
  readonly #seen = new SeenRows<SandboxRow>();
  /** Called when attempts were removed with their sandboxes. */
  readonly #attemptsRemoved: () => void;

  constructor(session: SqlSession, statements: SandboxStatements, attemptsRemoved: () => void) {
    this.#session = session;
    this.#statements = statements;
    this.#attemptsRemoved = attemptsRemoved;
  }

  async get(uid: string): Promise<SandboxRecord | null> {
    return await this.#one(this.#statements.get, { uid });
  }

  async find(workspaceId: string | null, idOrUid: string): Promise<SandboxRecord | null> {
    const byUid = await this.get(idOrUid);
    if (byUid !== null && (workspaceId === null || byUid.workspaceId === workspaceId)) return byUid;
    if (workspaceId !== null) return await this.#byId(workspaceId, idOrUid);
    const [only, another] = await this.#session.all(this.#statements.workspacesOfId, { id: idOrUid });
    return only === undefined || another !== undefined ? null : await this.#byId(only.workspace_id, idOrUid);
  }

  async findReusable(workspaceId: string, reuseKey: string): Promise<SandboxRecord | null> {
    return await this.#one(this.#statements.byReuseKey, { workspaceId, reuseKey });
  }

  async insert(record: SandboxRecord): Promise<void> {
    const row = sandboxRow(record);
    const inserted = await this.#session.change(this.#statements.rows.insert(row));
    if (inserted === 0) throw await this.#whyNotInserted(record);
    await this.#insertLabels(record);
    this.#seen.set(row.uid, row);
    this.#session.sandboxUids.add(row.uid);
  }

  async update(record: SandboxRecord): Promise<SandboxRecord> {
    this.#session.assertWritable();
    const { uid, version } = record;
    const stored = this.#seen.get(uid) ?? (await this.#seenNow(uid));
    const next = { ...record, version: version + 1 };
    const row = sandboxRow(next);
    if (stored?.version !== version || !sameIdentity(stored, row)) throw changed(uid);
    if (row.reuse_key !== null && row.reuse_key !== stored.reuse_key)
      await this.#assertUnused(row.reuse_key, row);
    if (stored.state === 'destroyed' && row.state !== 'destroyed') await this.#assertIdFree(row);
    // The changes are never empty: the version, at least, is new.
    const changes = this.#seen.changes(uid, row) as Partial<SandboxRow>;
    const updated = await this.#session.change(this.#statements.rows.update(changes, { uid, version }));
    if (updated === 0) throw changed(uid);
    if (row.labels !== stored.labels) {
      await this.#session.run(this.#statements.removeLabels, { uid });
      await this.#insertLabels(record);
    }
    this.#seen.set(uid, row);
    this.#session.sandboxUids.add(uid);
    return next;
  }

  async documents(uid: string, generation: number): Promise<SandboxDocuments | null> {
    const row = await this.#session.first(this.#statements.documents, { uid, generation });
    return row && documentsRecord(row);
  }

  async insertDocuments(documents: SandboxDocuments): Promise<void> {
    const inserted = await this.#session.change(
      this.#statements.documentRows.insert(documentsRow(documents)),
    );
    const { uid, generation } = documents;
    if (inserted === 0) throw conflict(`Generation ${generation} of ${uid} has its documents.`);
  }

  async list(query: SandboxQuery): Promise<Page<SandboxRecord>> {
    const cursor = decodeCursor(query.cursor);
    if (query.states?.length === 0) return { items: [], nextCursor: null };
    const rows = await this.#session.query(sandboxPage(this.#statements.db, query, cursor, query.limit + 1));
    const items = rows.slice(0, query.limit).map(sandboxRecord);
    const last = items.at(-1);
    const more = rows.length > query.limit && last !== undefined;
    return { items, nextCursor: more ? encodeCursor({ createdAt: last.createdAt, key: last.uid }) : null };
  }

  async countLiving(workspaceId: string): Promise<number> {
    return Number((await this.#session.first(this.#statements.countLiving, { workspaceId }))?.count ?? 0);
  }

  async countCreated(workspaceId: string, since: number): Promise<number> {
    const row = await this.#session.first(this.#statements.countCreated, { workspaceId, since });
    return Number(row?.count ?? 0);
  }

  async countByState(): Promise<ReadonlyMap<SandboxState, number>> {
    const rows = await this.#session.all(this.#statements.countByState, {});
    return new Map(rows.map(({ state, count }) => [state as SandboxState, Number(count)]));
  }

  async dueWork(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return await this.#many(this.#statements.dueWork, { now, limit });
  }

  async dueDeadlines(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return await this.#many(this.#statements.dueDeadlines, { now, limit });
  }

  async dueIdle(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return await this.#many(this.#statements.dueIdle, { now, limit });
  }

  async nextDueAt(): Promise<number | null> {
    const row = await this.#session.first(this.#statements.nextDue, {});
    const times = [row?.work, row?.deadline, row?.idle].filter((time) => typeof time === 'number');
    return times.length === 0 ? null : Math.min(...times);
  }

  async establishedOn(
    extensionId: string,
    afterUid: string | null,
    limit: number,
  ): Promise<readonly SandboxRecord[]> {
    const args = { extensionId, afterUid: afterUid ?? '', limit };
    return await this.#many(this.#statements.establishedOn, args);
  }

  async releaseForeignLeases(owner: string, now: number): Promise<number> {
    this.#session.assertWritable();
    const leased = await this.#many(this.#statements.leasedByOthers, { owner });
    for (const record of leased) await this.update(withoutLease(record, now));
    return leased.length;
  }

  async prune(before: number, eventSeq: number, limit: number): Promise<number> {
    this.#session.assertWritable();
    const old = await this.#session.all(this.#statements.prunable, { before, eventSeq, limit });
    const { removeEvents, removeSetups, removeAttempts, removeDocuments, removeLabels, remove } =
      this.#statements;
    const all = [removeEvents, removeSetups, removeAttempts, removeDocuments, removeLabels, remove];
    for (const { uid } of old) {
      for (const statement of all) {
        await this.#session.run(statement, { uid });
      }
      this.#seen.delete(uid);
      this.#session.sandboxUids.add(uid);
    }
    if (old.length > 0) this.#attemptsRemoved();
    return old.length;
  }

  async #byId(workspaceId: string, id: string): Promise<SandboxRecord | null> {
    const present = await this.#one(this.#statements.presentById, { workspaceId, id });
    return present ?? (await this.#one(this.#statements.lastDestroyedById, { workspaceId, id }));
  }

  async #insertLabels({ uid, labels, createdAt }: SandboxRecord): Promise<void> {
    for (const [name, value] of Object.entries(labels)) {
      const row = { sandbox_uid: uid, name, value, created_at: createdAt };
      await this.#session.change(this.#statements.labelRows.insert(row));
    }
  }

  async #whyNotInserted({ uid, id, workspaceId, state }: SandboxRecord): Promise<Error> {
    const taken = await this.#session.first(this.#statements.presentById, { workspaceId, id });
    if (state !== 'destroyed' && taken) return idTaken(id);
    if (await this.#session.first(this.#statements.get, { uid }))
      return conflict(`The sandbox ${uid} exists.`);
    return reuseKeyTaken();
  }

  async #assertUnused(reuseKey: string, { workspace_id }: SandboxRow): Promise<void> {
    const args = { workspaceId: workspace_id, reuseKey };
    if (await this.#session.first(this.#statements.byReuseKey, args)) throw reuseKeyTaken();
  }

  async #assertIdFree({ id, workspace_id }: SandboxRow): Promise<void> {
    const args = { workspaceId: workspace_id, id };
    if (await this.#session.first(this.#statements.presentById, args)) {
      throw conflict(`The id "${id}" is in use again.`);
    }
  }

  async #seenNow(uid: string): Promise<SandboxRow | null> {
    const row = await this.#session.first(this.#statements.get, { uid });
    if (row !== null) this.#seen.set(uid, row);
    return row;
  }

  async #one<Args extends object>(statement: Statement<Args, SandboxRow>, args: Args) {
    const row = await this.#session.first(statement, args);
    if (row === null) return null;
    this.#seen.set(row.uid, row);
    return sandboxRecord(row);
  }

  async #many<Args extends object>(statement: Statement<Args, SandboxRow>, args: Args) {
    const rows = await this.#session.all(statement, args);
    for (const row of rows) this.#seen.set(row.uid, row);
    return rows.map(sandboxRecord);
  }
}

/** Compares the columns that never change and that a row is found and ordered by. */
function sameIdentity(a: SandboxRow, b: SandboxRow): boolean {
  return a.id === b.id && a.workspace_id === b.workspace_id && a.created_at === b.created_at;
}

function changed(uid: string) {
  return conflict(`The sandbox ${uid} was changed.`);
}

function reuseKeyTaken() {
  return conflict('Another sandbox of this scope exists by now.');
}
