import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

/** Longer than a local create takes: its commits then share one wait. */
const AT_THE_LATEST_MS = 25;

/**
 * Brings the write-ahead log to the disk without blocking the process meanwhile, as SQLite would inside COMMIT. One sync serves
 * every commit made before it began. A disk that failed once is not trusted again: which writes it lost is unknown.
 */
export class WalSync {
  readonly #path: string;
  #file: number | null = null;
  #waiting: Waiting[] = [];
  #busy = false;
  /** Whether a caller waits for the sync. Otherwise commits may stay in memory for a moment, so that others join them. */
  #wanted = false;
  #timer: NodeJS.Timeout | null = null;
  #latest: Promise<void> | null = null;
  #failure: Error | null = null;

  /** The file need not exist before the first commit. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Why no further sync is accepted; `null` while it works. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Settles when the disk has, or has not, all that is committed by now; `null` when it has. */
  pending(): Promise<void> | null {
    if (this.#latest !== null) this.#want();
    return this.#latest;
  }

  /** Resolves when everything committed so far is on the disk. */
  sync(): Promise<void> {
    const synced = this.soon();
    this.#want();
    return synced;
  }

  /** As `sync`, for a commit that no caller waits for: the sync starts when a caller waits, or after some time. */
  soon(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const over = () => {
      if (this.#latest === promise) this.#latest = null;
    };
    promise.then(over, over);
    this.#latest = promise;
    this.#waiting.push({ resolve, reject });
    if (!this.#busy) this.#timer ??= setTimeout(() => this.#begin(), AT_THE_LATEST_MS);
    return promise;
  }

  close(): void {
    this.#disarm();
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #want(): void {
    if (this.#failure !== null || this.#waiting.length === 0) return;
    this.#wanted = true;
    if (!this.#busy) this.#begin();
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #begin(): void {
    this.#disarm();
    const served = this.#waiting;
    this.#waiting = [];
    this.#wanted = false;
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
      if (this.#wanted) this.#begin();
      else if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#begin(), AT_THE_LATEST_MS);
      for (const { resolve } of served) resolve();
    });
  }

  #fail(served: readonly Waiting[], error: Error): void {
    this.#disarm();
    this.#failure = error;
    for (const { reject } of [...served, ...this.#waiting]) reject(error);
    this.#waiting = [];
  }
}

/** The name of the file, too, must survive. SQLite has no lock on this file that closing a descriptor of ours could end. */
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
