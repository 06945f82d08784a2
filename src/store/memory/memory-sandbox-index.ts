import { isLiving } from '../../core/lifecycle.ts';
import type { SandboxRecord } from '../../core/sandbox.ts';
import type { PageCursor } from '../page-cursor.ts';
import { claimableAt, watchedDeadline } from '../sandbox-watch.ts';
import { NewestFirst } from './newest-first.ts';

/** All rows, and the ways to them that do not lead past every row there ever was. */
export class MemorySandboxIndex {
  readonly rows = new Map<string, SandboxRecord>();
  /** Rows that a sweep may have to find: bounded by what is going on, not by what ever was. */
  readonly watched = new Map<string, SandboxRecord>();
  readonly destroyed = new Map<string, SandboxRecord>();
  readonly #uidById = new Map<string, string>();
  readonly #uidsByBareId = new Map<string, readonly string[]>();
  readonly #uidByReuseKey = new Map<string, string>();
  readonly #living = new Map<string, Set<string>>();
  readonly #newestFirst = new NewestFirst();
  readonly #newestFirstByWorkspace = new Map<string, NewestFirst>();

  byId(workspaceId: string, id: string): SandboxRecord | undefined {
    return this.#row(this.#uidById.get(scoped(workspaceId, id)));
  }

  byBareId(id: string): readonly string[] {
    return this.#uidsByBareId.get(id) ?? [];
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
    this.#uidById.set(scoped(workspaceId, id), uid);
    this.#uidsByBareId.set(id, [...this.byBareId(id), uid]);
    this.#newestFirst.add(key);
    this.#orderOf(workspaceId).add(key);
    this.#place(null, record);
  }

  remove(record: SandboxRecord): void {
    const { uid, id, workspaceId } = record;
    const key = { createdAt: record.createdAt, key: uid };
    this.#uidById.delete(scoped(workspaceId, id));
    const others = this.byBareId(id).filter((other) => other !== uid);
    if (others.length === 0) this.#uidsByBareId.delete(id);
    else this.#uidsByBareId.set(id, others);
    this.#newestFirst.remove(key);
    this.#orderOf(workspaceId).remove(key);
    this.#place(record, null);
  }

  /** What identifies the row is the same in both. */
  replace(before: SandboxRecord, after: SandboxRecord): void {
    this.#place(before, after);
  }

  #place(before: SandboxRecord | null, after: SandboxRecord | null): void {
    const { uid, workspaceId } = (after ?? before) as SandboxRecord;
    const reuseBefore = before?.reuseKey ?? null;
    const reuseAfter = after?.reuseKey ?? null;
    if (reuseBefore !== reuseAfter) {
      if (reuseBefore !== null) this.#uidByReuseKey.delete(scoped(workspaceId, reuseBefore));
      if (reuseAfter !== null) this.#uidByReuseKey.set(scoped(workspaceId, reuseAfter), uid);
    }
    const livesAfter = after !== null && isLiving(after.state);
    if (livesAfter !== (before !== null && isLiving(before.state))) {
      if (livesAfter) this.#livingOf(workspaceId).add(uid);
      else this.#livingOf(workspaceId).delete(uid);
    }
    put(this.rows, uid, after);
    put(this.watched, uid, after !== null && isWatched(after) ? after : null);
    if (before?.state === 'destroyed' || after?.state === 'destroyed') {
      put(this.destroyed, uid, after?.state === 'destroyed' ? after : null);
    }
  }

  #row(uid: string | undefined): SandboxRecord | undefined {
    return uid === undefined ? undefined : this.rows.get(uid);
  }

  #livingOf(workspaceId: string): Set<string> {
    let uids = this.#living.get(workspaceId);
    if (uids === undefined) {
      uids = new Set();
      this.#living.set(workspaceId, uids);
    }
    return uids;
  }

  #orderOf(workspaceId: string): NewestFirst {
    let order = this.#newestFirstByWorkspace.get(workspaceId);
    if (order === undefined) {
      order = new NewestFirst();
      this.#newestFirstByWorkspace.set(workspaceId, order);
    }
    return order;
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
