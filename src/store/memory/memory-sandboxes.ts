import type { SandboxState } from '../../contract/values/state.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { SandboxQuery, SandboxStore } from '../../core/ports/store/sandbox-store.ts';
import { decodeCursor, encodeCursor } from '../page-cursor.ts';
import { conflict, idTaken } from '../rejections.ts';
import {
  claimableAt,
  establishedOn,
  watchedDeadline,
  watchedIdleDeadline,
  withoutLease,
} from '../sandbox-watch.ts';
import type { MemoryJournal } from './memory-journal.ts';
import { MemorySandboxIndex } from './memory-sandbox-index.ts';
import { MemoryTable } from './memory-table.ts';

/** Reads the rows of other tables that belong to a sandbox. */
export interface SandboxDependants {
  eventsOf(uid: string): readonly { readonly seq: number }[];
  parkedSeqs(): ReadonlySet<number>;
  removeOf(uids: readonly string[]): void;
}

type TimeOf = (record: SandboxRecord) => number | null;

export class MemorySandboxes implements SandboxStore {
  readonly #journal: MemoryJournal;
  readonly #dependants: SandboxDependants;
  readonly #index = new MemorySandboxIndex();
  readonly #documents: MemoryTable<readonly SandboxDocuments[]>;

  constructor(journal: MemoryJournal, dependants: SandboxDependants) {
    this.#journal = journal;
    this.#dependants = dependants;
    this.#documents = new MemoryTable(journal);
  }

  async get(uid: string): Promise<SandboxRecord | null> {
    return this.#index.rows.get(uid) ?? null;
  }

  async find(workspaceId: string | null, idOrUid: string): Promise<SandboxRecord | null> {
    const byUid = this.#index.rows.get(idOrUid);
    if (byUid !== undefined && (workspaceId === null || byUid.workspaceId === workspaceId)) return byUid;
    if (workspaceId !== null) return this.#byId(workspaceId, idOrUid);
    const [only, another] = this.#index.workspacesOfId(idOrUid);
    return only === undefined || another !== undefined ? null : this.#byId(only, idOrUid);
  }

  async findReusable(workspaceId: string, reuseKey: string): Promise<SandboxRecord | null> {
    return this.#index.byReuseKey(workspaceId, reuseKey) ?? null;
  }

  async insert(record: SandboxRecord): Promise<void> {
    this.#journal.assertWritable();
    const { uid, id, workspaceId, reuseKey } = record;
    if (record.state !== 'destroyed' && this.#index.presentById(workspaceId, id)) throw idTaken(id);
    if (this.#index.rows.has(uid)) throw conflict(`The sandbox ${uid} exists.`);
    if (reuseKey !== null && this.#index.byReuseKey(workspaceId, reuseKey)) throw reuseKeyTaken();
    this.#index.add(record);
    this.#journal.wrote(() => this.#index.remove(record));
    this.#journal.touched(uid);
  }

  async update(record: SandboxRecord): Promise<SandboxRecord> {
    this.#journal.assertWritable();
    const { uid, id, workspaceId, reuseKey } = record;
    const stored = this.#index.rows.get(uid);
    if (stored === undefined || stored.version !== record.version || !sameIdentity(stored, record)) {
      throw conflict(`The sandbox ${uid} was changed.`);
    }
    if (reuseKey !== null && reuseKey !== stored.reuseKey && this.#index.byReuseKey(workspaceId, reuseKey)) {
      throw reuseKeyTaken();
    }
    const returns = stored.state === 'destroyed' && record.state !== 'destroyed';
    if (returns && this.#index.presentById(workspaceId, id))
      throw conflict(`The id "${id}" is in use again.`);
    return this.#replace(stored, { ...record, version: record.version + 1 });
  }

  async documents(uid: string, generation: number): Promise<SandboxDocuments | null> {
    return this.#documents.get(uid)?.find((row) => row.generation === generation) ?? null;
  }

  async insertDocuments(documents: SandboxDocuments): Promise<void> {
    this.#journal.assertWritable();
    const { uid, generation } = documents;
    const others = this.#documents.get(uid) ?? [];
    if (others.some((row) => row.generation === generation)) {
      throw conflict(`Generation ${generation} of ${uid} has its documents.`);
    }
    this.#documents.set(uid, [...others, documents]);
  }

  async list(query: SandboxQuery): Promise<Page<SandboxRecord>> {
    const items: SandboxRecord[] = [];
    for (const record of this.#index.newestFirst(query.workspaceId, decodeCursor(query.cursor))) {
      if (!matches(record, query)) continue;
      const last = items.at(-1);
      if (items.length >= query.limit && last !== undefined) {
        return { items, nextCursor: encodeCursor({ createdAt: last.createdAt, key: last.uid }) };
      }
      items.push(record);
    }
    return { items, nextCursor: null };
  }

  async countLiving(workspaceId: string): Promise<number> {
    return this.#index.livingCount(workspaceId);
  }

  async countCreated(workspaceId: string, since: number): Promise<number> {
    let count = 0;
    for (const row of this.#index.newestFirst(workspaceId, null)) {
      if (row.createdAt < since) break;
      count += 1;
    }
    return count;
  }

  async countByState(): Promise<ReadonlyMap<SandboxState, number>> {
    const counts = new Map<SandboxState, number>();
    for (const { state } of this.#index.rows.values()) {
      if (state !== 'destroyed') counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return counts;
  }

  async dueWork(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return this.#due(claimableAt, now, limit);
  }

  async dueDeadlines(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return this.#due(watchedDeadline, now, limit);
  }

  async dueIdle(now: number, limit: number): Promise<readonly SandboxRecord[]> {
    return this.#due(watchedIdleDeadline, now, limit);
  }

  async nextDueAt(): Promise<number | null> {
    let next = Number.POSITIVE_INFINITY;
    for (const record of this.#index.watched.values()) {
      next = Math.min(
        next,
        claimableAt(record) ?? next,
        watchedDeadline(record) ?? next,
        watchedIdleDeadline(record) ?? next,
      );
    }
    return next === Number.POSITIVE_INFINITY ? null : next;
  }

  async establishedOn(
    extensionId: string,
    afterUid: string | null,
    limit: number,
  ): Promise<readonly SandboxRecord[]> {
    return [...this.#index.watched.values()]
      .filter((record) => establishedOn(record) === extensionId)
      .filter((record) => afterUid === null || record.uid > afterUid)
      .sort((a, b) => (a.uid < b.uid ? -1 : 1))
      .slice(0, limit);
  }

  async releaseForeignLeases(owner: string, now: number): Promise<number> {
    this.#journal.assertWritable();
    const foreign = [...this.#index.watched.values()].filter(
      ({ lease }) => lease !== null && lease.owner !== owner,
    );
    for (const record of foreign) {
      this.#replace(record, { ...withoutLease(record, now), version: record.version + 1 });
    }
    return foreign.length;
  }

  async prune(before: number, eventSeq: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const parked = this.#dependants.parkedSeqs();
    const old = [...this.#index.destroyed.values()]
      .filter((record) => record.stateSince < before)
      .filter(({ uid }) =>
        this.#dependants.eventsOf(uid).every(({ seq }) => seq <= eventSeq && !parked.has(seq)),
      )
      .sort((a, b) => a.stateSince - b.stateSince || (a.uid < b.uid ? -1 : 1))
      .slice(0, limit);
    this.#dependants.removeOf(old.map(({ uid }) => uid));
    for (const record of old) {
      this.#documents.delete(record.uid);
      this.#index.remove(record);
      this.#journal.wrote(() => this.#index.add(record));
      this.#journal.touched(record.uid);
    }
    return old.length;
  }

  #byId(workspaceId: string, id: string): SandboxRecord | null {
    return this.#index.presentById(workspaceId, id) ?? this.#index.lastCreatedById(workspaceId, id) ?? null;
  }

  #replace(stored: SandboxRecord, next: SandboxRecord): SandboxRecord {
    this.#index.replace(stored, next);
    this.#journal.wrote(() => this.#index.replace(next, stored));
    this.#journal.touched(next.uid);
    return next;
  }

  #due(timeOf: TimeOf, now: number, limit: number): readonly SandboxRecord[] {
    const due: { readonly at: number; readonly record: SandboxRecord }[] = [];
    for (const record of this.#index.watched.values()) {
      const at = timeOf(record);
      if (at !== null && at <= now) due.push({ at, record });
    }
    due.sort((a, b) => a.at - b.at || (a.record.uid < b.record.uid ? -1 : 1));
    return due.slice(0, limit).map(({ record }) => record);
  }
}

function matches(record: SandboxRecord, query: SandboxQuery): boolean {
  const { states, profileId, extensionId, labels, harness, externalId } = query;
  const { consumer } = record;
  if (states !== undefined && !states.includes(record.state)) return false;
  if (profileId !== undefined && record.profileId !== profileId) return false;
  if (extensionId !== undefined && record.extensionId !== extensionId) return false;
  if (harness !== undefined && consumer.harness !== harness) return false;
  if (
    externalId !== undefined &&
    consumer.session_id !== externalId &&
    consumer.run_id !== externalId &&
    consumer.job_id !== externalId
  ) {
    return false;
  }
  for (const name in labels) if (record.labels[name] !== labels[name]) return false;
  return true;
}

/** Compares the fields that never change and that a row is found and ordered by. */
function sameIdentity(a: SandboxRecord, b: SandboxRecord): boolean {
  return a.id === b.id && a.workspaceId === b.workspaceId && a.createdAt === b.createdAt;
}

function reuseKeyTaken() {
  return conflict('Another sandbox of this scope exists by now.');
}
