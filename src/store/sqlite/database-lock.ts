import { DatabaseSync } from 'node:sqlite';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { privateFile } from './private-file.ts';

/** `SQLITE_BUSY`, in the low byte. */
const BUSY = 5;

/**
 * Lets one process use a database. A transaction is held open on a small database beside it: the lock is the operating system's,
 * so that it ends with the process, however the process ends.
 */
export class DatabaseLock {
  readonly #holder: DatabaseSync;

  private constructor(holder: DatabaseSync) {
    this.#holder = holder;
  }

  /** Rejects with `SBX_STORE_BUSY` when another process has the lock. */
  static acquire(databasePath: string): DatabaseLock {
    const path = `${databasePath}.lock`;
    privateFile(path);
    const holder = new DatabaseSync(path, { timeout: 0 });
    try {
      holder.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    } catch (error) {
      holder.close();
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== BUSY) throw error;
      throw new SandboxerError('SBX_STORE_BUSY', `Another server is using ${databasePath}.`);
    }
    return new DatabaseLock(holder);
  }

  release(): void {
    this.#holder.close();
  }
}
