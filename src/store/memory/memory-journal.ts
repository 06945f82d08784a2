import type { CommitNotice } from '../../core/ports/store/store.ts';
import type { KeyRecord, WorkspaceRecord } from '../../core/tenancy/tenancy.ts';
import { notWritable } from '../rejections.ts';

/** The running transaction: what a rollback undoes, and the notice that a commit sends to listeners. */
class Entry implements CommitNotice {
  readonly undo: (() => void)[] = [];
  readonly sandboxUids = new Set<string>();
  lastSeq = 0;
  readonly keys: KeyRecord[] = [];
  readonly deletedWorkspaces: string[] = [];
  fundAt: number | null = null;
}

/**
 * The undo log of the store in memory, which serves tests and the simulation and behaves as `sql/` does
 * (suite/store-equivalence.test.ts). One transaction at a time writes; each write leaves its inverse here.
 */
export class MemoryJournal {
  #entry: Entry | null = null;

  begin(): void {
    this.#entry = new Entry();
  }

  commit(): CommitNotice {
    const entry = this.#writable();
    this.#entry = null;
    return entry;
  }

  rollback(): void {
    const { undo } = this.#writable();
    this.#entry = null;
    for (let i = undo.length - 1; i >= 0; i--) undo[i]?.();
  }

  /** Throws outside a transaction, so it is called before anything is changed. */
  assertWritable(): void {
    this.#writable();
  }

  wrote(undo: () => void): void {
    this.#writable().undo.push(undo);
  }

  /** Names a sandbox in the notice of the commit. */
  touched(sandboxUid: string): void {
    this.#writable().sandboxUids.add(sandboxUid);
  }

  funds(at: number | null): void {
    const entry = this.#writable();
    if (at !== null) entry.fundAt = Math.min(entry.fundAt ?? at, at);
  }

  numbered(seq: number): void {
    this.#writable().lastSeq = seq;
  }

  changedKey(key: KeyRecord): void {
    this.#writable().keys.push(key);
  }

  changedWorkspace({ id, deletedAt }: WorkspaceRecord): void {
    if (deletedAt !== undefined) this.#writable().deletedWorkspaces.push(id);
  }

  #writable(): Entry {
    if (this.#entry === null) throw notWritable();
    return this.#entry;
  }
}
