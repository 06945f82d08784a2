import { isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { PageCursor } from '../page-cursor.ts';
import { claimableAt, watchedDeadline } from '../sandbox-watch.ts';
import { NewestFirst } from './newest-first.ts';

/** Holds all rows, with indexes that avoid reading every row there ever was. */
export class MemorySandboxIndex {
  readonly rows = new Map<string, SandboxRecord>();
  /** Rows that a sweep may have to find: bounded by what is going on, not by what ever was. */
  readonly watched = new Map<string, SandboxRecord>();
  readonly destroyed = new Map<string, SandboxRecord>();
  /** The one of (workspace, id) that is not destroyed. */
  readonly #presentById = new Map<string, string>();
  /** All rows of an id, of any workspace. */
  readonly #everById = new Map<string, NewestFirst>();
  readonly #uidByReuseKey = new Map<string, string>();
  readonly #living = new Map<string, Set<string>>();
  readonly #newestFirst = new NewestFirst();
  readonly #newestFirstByWorkspace = new Map<string, NewestFirst>();

  presentById(workspaceId: string, id: string): SandboxRecord | undefined {
    return this.#row(this.#presentById.get(scoped(workspaceId, id)));
  }

  lastCreatedById(workspaceId: string, id: string): SandboxRecord | undefined {
    for (const record of this.#everOf(id)) if (record.workspaceId === workspaceId) return record;
    return undefined;
  }

  workspacesOfId(id: string): ReadonlySet<string> {
    const workspaces = new Set<string>();
    for (const record of this.#everOf(id)) workspaces.add(record.workspaceId);
    return workspaces;
  }

  byReuseKey(workspaceId: string, reuseKey: string): SandboxRecord | undefined {
    return this.#row(this.#uidByReuseKey.get(scoped(workspaceId, reuseKey)));
  }

  livingCount(workspaceId: string): number {
    return this.#living.get(workspaceId)?.size ?? 0;
  }

  *newestFirst(workspaceId: string | null, cursor: PageCursor | null): Generator<SandboxRecord> {
    const order = workspaceId === null ? this.#newestFirst : this.#newestFirstByWorkspace.get(workspaceId);
    if (order === undefined) return;
    for (const uid of order.after(cursor)) yield this.rows.get(uid) as SandboxRecord;
  }

  add(record: SandboxRecord): void {
    const { uid, id, workspaceId } = record;
    const key = { createdAt: record.createdAt, key: uid };
    addTo(this.#everById, id, key);
    this.#newestFirst.add(key);
    addTo(this.#newestFirstByWorkspace, workspaceId, key);
    this.#place(null, record);
  }

  remove(record: SandboxRecord): void {
    const { uid, id, workspaceId } = record;
    const key = { createdAt: record.createdAt, key: uid };
    removeFrom(this.#everById, id, key);
    this.#newestFirst.remove(key);
    removeFrom(this.#newestFirstByWorkspace, workspaceId, key);
    this.#place(record, null);
  }

  /** The fields that identify the row are the same in both records. */
  replace(before: SandboxRecord, after: SandboxRecord): void {
    this.#place(before, after);
  }

  #place(before: SandboxRecord | null, after: SandboxRecord | null): void {
    const { uid, id, workspaceId } = (after ?? before) as SandboxRecord;
    const presentAfter = after !== null && after.state !== 'destroyed';
    if (presentAfter !== (before !== null && before.state !== 'destroyed')) {
      if (presentAfter) this.#presentById.set(scoped(workspaceId, id), uid);
      else this.#presentById.delete(scoped(workspaceId, id));
    }
    const reuseBefore = before?.reuseKey ?? null;
    const reuseAfter = after?.reuseKey ?? null;
    if (reuseBefore !== reuseAfter) {
      if (reuseBefore !== null) this.#uidByReuseKey.delete(scoped(workspaceId, reuseBefore));
      if (reuseAfter !== null) this.#uidByReuseKey.set(scoped(workspaceId, reuseAfter), uid);
    }
    const livesAfter = after !== null && isLiving(after.state);
    if (livesAfter !== (before !== null && isLiving(before.state))) {
      const living = entryOf(this.#living, workspaceId, newSet);
      if (livesAfter) living.add(uid);
      else living.delete(uid);
    }
    put(this.rows, uid, after);
    put(this.watched, uid, after !== null && isWatched(after) ? after : null);
    if (before?.state === 'destroyed' || after?.state === 'destroyed') {
      put(this.destroyed, uid, after?.state === 'destroyed' ? after : null);
    }
  }

  *#everOf(id: string): Generator<SandboxRecord> {
    for (const uid of this.#everById.get(id)?.after(null) ?? []) yield this.rows.get(uid) as SandboxRecord;
  }

  #row(uid: string | undefined): SandboxRecord | undefined {
    return uid === undefined ? undefined : this.rows.get(uid);
  }
}

/** Every row with an idle deadline in force is living, and so has a deadline as well. */
function isWatched(record: SandboxRecord): boolean {
  return record.lease !== null || watchedDeadline(record) !== null || claimableAt(record) !== null;
}

function put(rows: Map<string, SandboxRecord>, uid: string, record: SandboxRecord | null): void {
  if (record === null) rows.delete(uid);
  else rows.set(uid, record);
}

function scoped(workspaceId: string, key: string): string {
  return `${workspaceId}\n${key}`;
}

const newSet = () => new Set<string>();
const newOrder = () => new NewestFirst();

function entryOf<T>(entries: Map<string, T>, key: string, create: () => T): T {
  let entry = entries.get(key);
  if (entry === undefined) {
    entry = create();
    entries.set(key, entry);
  }
  return entry;
}

function addTo(orders: Map<string, NewestFirst>, at: string, key: PageCursor): void {
  entryOf(orders, at, newOrder).add(key);
}

function removeFrom(orders: Map<string, NewestFirst>, at: string, key: PageCursor): void {
  const order = orders.get(at);
  order?.remove(key);
  if (order?.first() === undefined) orders.delete(at);
}
