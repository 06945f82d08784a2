import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ControlPorts } from '../../control/ports/control-ports.ts';
import type { CommitNotice } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import { atTime } from './at-time.ts';

/** The key and the workspace of an open exchange. */
export type Holder = Pick<Caller, 'keyId' | 'keyEndsAt' | 'workspaceId'>;

type End = (reason: SandboxerError) => void;

interface OpenKey {
  readonly ends: Set<End>;
  endsAt: number | null;
  forget: () => void;
}

/** The number of keys and workspaces that ended lately to remember: a request may have been authenticated just before. */
const MOST_REMEMBERED = 4_096;
/** Keys that previews were made with, as they are stored. */
const MOST_NUMBERS = 4_096;

function keyEnded(): SandboxerError {
  return new SandboxerError(
    'SBX_UNAUTHENTICATED',
    'The key has ended: it was revoked, rotated, or has expired.',
    {
      remedy: 'Use a key that is in force.',
    },
  );
}

function workspaceEnded(): SandboxerError {
  return new SandboxerError('SBX_NOT_FOUND', 'The workspace was deleted.');
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size > MOST_REMEMBERED) for (const oldest of ids.values()) return void ids.delete(oldest);
}

/**
 * Knows the open exchanges of each key, and of each workspace. They end with the key: by the commit that revokes it, brings its
 * end forward or deletes the workspace, and by a timer at the end of its time.
 */
export class KeyEnds {
  readonly #deps: Pick<ControlPorts, 'store' | 'clock'>;
  readonly #keys = new Map<string, OpenKey>();
  readonly #workspaces = new Map<string, Set<End>>();
  readonly #endedKeys = new Set<string>();
  readonly #endedWorkspaces = new Set<string>();
  readonly #numbers = new Map<number, KeyRecord>();
  #looking = 0;
  readonly #stopListening: () => void;

  constructor(deps: Pick<ControlPorts, 'store' | 'clock'>) {
    this.#deps = deps;
    this.#stopListening = deps.store.onCommit((notice) => this.#committed(notice));
  }

  /**
   * Calls `end` once, when the holder's key or workspace ends. Throws when it has ended since the holder was authenticated.
   * Returns a function to call when the exchange is over.
   */
  watch({ keyId, keyEndsAt = null, workspaceId }: Holder, end: End): () => void {
    if (keyId !== null && this.#endedKeys.has(keyId)) throw keyEnded();
    if (this.#endedWorkspaces.has(workspaceId)) throw workspaceEnded();
    const leaveWorkspace = this.#join(workspaceId, end);
    const leaveKey = keyId === null ? null : this.#hold(keyId, keyEndsAt, end);
    return () => {
      leaveWorkspace();
      leaveKey?.();
    };
  }

  /** The key that a preview was made with, while it is in force. */
  async numbered(number: number): Promise<Holder> {
    const key = this.#numbers.get(number) ?? (await this.#look(number));
    if (!key || this.#isOver(key)) throw keyEnded();
    return { keyId: key.id, keyEndsAt: key.expiresAt, workspaceId: key.workspaceId };
  }

  async #look(number: number): Promise<KeyRecord | null> {
    this.#looking += 1;
    try {
      const found = await this.#deps.store.read('key', (tx) => tx.tenancy.keyByNumber(number));
      // A record committed during the read is newer than the one read.
      const key = this.#numbers.get(number) ?? found;
      if (this.#numbers.size >= MOST_NUMBERS) this.#numbers.clear();
      if (key) this.#numbers.set(number, key);
      return key;
    } finally {
      this.#looking -= 1;
    }
  }

  close(): void {
    this.#stopListening();
    for (const { forget } of this.#keys.values()) forget();
    this.#keys.clear();
  }

  #join(workspaceId: string, end: End): () => void {
    const ends = this.#workspaces.get(workspaceId) ?? new Set();
    this.#workspaces.set(workspaceId, ends);
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#workspaces.get(workspaceId) === ends) this.#workspaces.delete(workspaceId);
    };
  }

  #hold(keyId: string, endsAt: number | null, end: End): () => void {
    const open = this.#keys.get(keyId) ?? { ends: new Set(), endsAt: null, forget: () => {} };
    this.#keys.set(keyId, open);
    open.ends.add(end);
    this.#endAt(keyId, open, endsAt);
    return () => {
      open.ends.delete(end);
      if (open.ends.size > 0 || this.#keys.get(keyId) !== open) return;
      open.forget();
      this.#keys.delete(keyId);
    };
  }

  /** Sets the end of a key, which only ever comes nearer: an older, later value is ignored. */
  #endAt(keyId: string, open: OpenKey, endsAt: number | null): void {
    if (endsAt === null || (open.endsAt !== null && open.endsAt <= endsAt)) return;
    open.forget();
    open.endsAt = endsAt;
    open.forget = atTime(
      () => this.#deps.clock.now(),
      endsAt,
      () => this.#endKey(keyId),
    );
  }

  #isOver({ id, revokedAt, expiresAt, workspaceId }: KeyRecord): boolean {
    if (this.#endedKeys.has(id) || this.#endedWorkspaces.has(workspaceId)) return true;
    return revokedAt !== null || (expiresAt !== null && expiresAt <= this.#deps.clock.now());
  }

  #committed({ keys, deletedWorkspaces }: CommitNotice): void {
    for (const key of keys) {
      if (this.#looking > 0 || this.#numbers.has(key.number)) this.#numbers.set(key.number, key);
      const open = this.#keys.get(key.id);
      if (this.#isOver(key)) this.#endKey(key.id);
      else if (open) this.#endAt(key.id, open, key.expiresAt);
    }
    for (const id of deletedWorkspaces) {
      remember(this.#endedWorkspaces, id);
      const ends = this.#workspaces.get(id);
      this.#workspaces.delete(id);
      for (const end of ends ?? []) end(workspaceEnded());
    }
  }

  #endKey(keyId: string): void {
    remember(this.#endedKeys, keyId);
    const open = this.#keys.get(keyId);
    if (!open) return;
    this.#keys.delete(keyId);
    open.forget();
    for (const end of open.ends) end(keyEnded());
  }
}
