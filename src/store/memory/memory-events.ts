import type { EventDraft, EventRecord } from '../../core/events/event.ts';
import type { EventQuery, EventStore } from '../../core/ports/store/event-store.ts';
import type { MemoryJournal } from './memory-journal.ts';

/** Holds one log in the order of its numbers, and the same records by sandbox and by workspace. */
export class MemoryEvents implements EventStore {
  readonly #journal: MemoryJournal;
  readonly #parkedSeqs: () => ReadonlySet<number>;
  #log: EventRecord[] = [];
  #bySandbox = new Map<string, EventRecord[]>();
  #byWorkspace = new Map<string, EventRecord[]>();
  #lastSeq = 0;

  constructor(journal: MemoryJournal, parkedSeqs: () => ReadonlySet<number>) {
    this.#journal = journal;
    this.#parkedSeqs = parkedSeqs;
  }

  async append(drafts: readonly EventDraft[]): Promise<readonly EventRecord[]> {
    this.#journal.assertWritable();
    if (drafts.length === 0) return [];
    const firstSeq = this.#lastSeq + 1;
    const records = drafts.map((draft, i) => ({ ...draft, seq: firstSeq + i }));
    for (const record of records) {
      this.#log.push(record);
      pushTo(this.#byWorkspace, record.workspaceId, record);
      if (record.sandboxUid === null) continue;
      pushTo(this.#bySandbox, record.sandboxUid, record);
      this.#journal.touched(record.sandboxUid);
    }
    this.#lastSeq += records.length;
    this.#journal.numbered(this.#lastSeq);
    this.#journal.wrote(() => {
      this.#lastSeq -= records.length;
      this.#log.length -= records.length;
      for (const record of records) {
        popFrom(this.#byWorkspace, record.workspaceId);
        if (record.sandboxUid !== null) popFrom(this.#bySandbox, record.sandboxUid);
      }
    });
    return records;
  }

  async list(query: EventQuery): Promise<readonly EventRecord[]> {
    const { workspaceId, sandboxUid, types, after, before, limit } = query;
    const log = this.#narrowest(query);
    const first = indexAfter(log, after);
    const end = before === undefined ? log.length : indexAfter(log, before - 1);
    const found: EventRecord[] = [];
    for (let n = 0; n < end - first && found.length < limit; n++) {
      const event = log[before === undefined ? first + n : end - 1 - n] as EventRecord;
      if (workspaceId !== null && event.workspaceId !== workspaceId) continue;
      if (sandboxUid !== undefined && event.sandboxUid !== sandboxUid) continue;
      if (types !== undefined && !types.includes(event.type)) continue;
      found.push(event);
    }
    return found;
  }

  async lastSeq(): Promise<number> {
    return this.#lastSeq;
  }

  async prune(before: number, seq: number, limit: number): Promise<number> {
    this.#journal.assertWritable();
    const parked = this.#parkedSeqs();
    const old = this.#log
      .filter((event) => event.seq <= seq && event.at < before && !parked.has(event.seq))
      .sort((a, b) => a.at - b.at || a.seq - b.seq)
      .slice(0, limit);
    this.#remove(new Set(old));
    return old.length;
  }

  ofSandbox(uid: string): readonly EventRecord[] {
    return this.#bySandbox.get(uid) ?? [];
  }

  removeOf(sandboxUids: readonly string[]): void {
    this.#remove(new Set(sandboxUids.flatMap((uid) => this.ofSandbox(uid))));
  }

  /** Makes new lists instead of changing the old ones, which are what an undo brings back. */
  #remove(gone: ReadonlySet<EventRecord>): void {
    if (gone.size === 0) return;
    const before = { log: this.#log, bySandbox: this.#bySandbox, byWorkspace: this.#byWorkspace };
    this.#journal.wrote(() => {
      this.#log = before.log;
      this.#bySandbox = before.bySandbox;
      this.#byWorkspace = before.byWorkspace;
    });
    const stays = (event: EventRecord) => !gone.has(event);
    this.#log = this.#log.filter(stays);
    this.#bySandbox = new Map(this.#bySandbox);
    this.#byWorkspace = new Map(this.#byWorkspace);
    for (const uid of new Set([...gone].map((event) => event.sandboxUid))) {
      if (uid !== null) filterIn(this.#bySandbox, uid, stays);
    }
    for (const id of new Set([...gone].map((event) => event.workspaceId))) {
      filterIn(this.#byWorkspace, id, stays);
    }
  }

  #narrowest(query: EventQuery): readonly EventRecord[] {
    if (query.sandboxUid !== undefined) return this.ofSandbox(query.sandboxUid);
    if (query.workspaceId !== null) return this.#byWorkspace.get(query.workspaceId) ?? [];
    return this.#log;
  }
}

function pushTo(lists: Map<string, EventRecord[]>, key: string, event: EventRecord): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [event]);
  else list.push(event);
}

function popFrom(lists: Map<string, EventRecord[]>, key: string): void {
  const list = lists.get(key);
  if (list === undefined || list.length <= 1) lists.delete(key);
  else list.pop();
}

function filterIn(
  lists: Map<string, EventRecord[]>,
  key: string,
  stays: (event: EventRecord) => boolean,
): void {
  const rest = (lists.get(key) ?? []).filter(stays);
  if (rest.length === 0) lists.delete(key);
  else lists.set(key, rest);
}

function indexAfter(log: readonly EventRecord[], seq: number): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((log[middle] as EventRecord).seq <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
