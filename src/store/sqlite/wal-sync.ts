import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Brings the write-ahead log to the disk without the process standing still meanwhile, as it would if SQLite did it
 * inside COMMIT. One sync serves everybody who committed before it began. A disk that failed once is not trusted again:
 * what it lost by then nobody can tell.
 */
export class WalSync {
  readonly #path: string;
  #file: number | null = null;
  #waiting: Waiting[] = [];
  #busy = false;
  #latest: Promise<void> | null = null;
  #failure: Error | null = null;

  /** The file need not exist before the first commit. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Why nothing more is taken, if so. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Settles when the disk has, or has not, all that is committed by now; `null` when it has. */
  get pending(): Promise<void> | null {
    return this.#latest;
  }

  /** Something was committed: resolves when it is on the disk. */
  sync(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = () => {
      if (this.#latest === promise) this.#latest = null;
    };
    promise.then(over, over);
    this.#latest = promise;
    this.#waiting.push({ resolve, reject });
    if (!this.#busy) this.#begin();
    return promise;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #begin(): void {
    const served = this.#waiting;
    this.#waiting = [];
    this.#busy = true;
    try {
      this.#file ??= openLog(this.#path);
    } catch (error) {
      this.#fail(served, error as Error);
      return;
    }
    fdatasync(this.#file, (error) => {
      this.#busy = false;
      if (error !== null) return this.#fail(served, error);
      if (this.#waiting.length > 0) this.#begin();
      for (const { resolve } of served) resolve();
    });
  }

  #fail(served: readonly Waiting[], error: Error): void {
    this.#failure = error;
    for (const { reject } of [...served, ...this.#waiting]) reject(error);
    this.#waiting = [];
  }
}

/** Its name, too, must survive. SQLite has no lock on this file that closing a descriptor of ours could end. */
function openLog(path: string): number {
  const file = openSync(path, 'r');
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
  return file;
}
