import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StubWorldState } from '../world.ts';

export interface SavedState {
  /** Marks the processes of this stub, also over a restart of it. */
  readonly id: string;
  readonly world: StubWorldState;
}

/** The whole state as one file. What is asked to be saved while it is being written is written together afterwards. */
export class StateFile {
  readonly #directory: string;
  #writing: Promise<void> | null = null;
  #queued: Promise<void> | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(): SavedState | null {
    try {
      return JSON.parse(readFileSync(this.#path(), 'utf8')) as SavedState;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Resolves when everything that `state` gives now is on the disk. */
  save(state: () => SavedState): Promise<void> {
    if (this.#writing === null) {
      this.#writing = this.#write(state()).finally(() => {
        this.#writing = null;
      });
      return this.#writing;
    }
    this.#queued ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#queued = null;
        return this.save(state);
      });
    return this.#queued;
  }

  /** In one step: a crash leaves the old state or the new. */
  async #write(state: SavedState): Promise<void> {
    const text = JSON.stringify(state);
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const beside = `${this.#path()}.new`;
    await writeFile(beside, text, { mode: 0o600 });
    await rename(beside, this.#path());
  }

  #path(): string {
    return join(this.#directory, 'state.json');
  }
}
