import type { CommitNotice } from '../core/ports/store/store.ts';

export type CommitListener = (notice: CommitNotice) => void;

function hasNews({ sandboxUids, lastSeq, fundAt, keys, deletedWorkspaces }: CommitNotice): boolean {
  const movesWork = sandboxUids.size > 0 || lastSeq > 0 || fundAt !== null;
  return movesWork || keys.length > 0 || deletedWorkspaces.length > 0;
}

/** Calls the listeners of commits. A listener that throws is a defect: the commit still counts as a success. */
export class CommitListeners {
  readonly #listeners = new Set<CommitListener>();

  add(listener: CommitListener): () => void {
    const entry: CommitListener = (notice) => listener(notice);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  /** Commits without news (`hasNews`) are not announced: no listener could do anything about them. */
  tell(notice: CommitNotice): void {
    if (this.#listeners.size === 0 || !hasNews(notice)) return;
    for (const listener of this.#listeners) {
      try {
        listener(notice);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
