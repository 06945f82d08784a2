import { DatabaseSync } from 'node:sqlite';
import { Mutex } from '../../async/mutex.ts';
import type {
  CommitNotice,
  ReadOptions,
  Store,
  TransactionOptions,
  Tx,
} from '../../core/ports/store/store.ts';
import { CommitListeners } from '../commit-listeners.ts';
import { storeClosed } from '../rejections.ts';
import { SqlSession } from '../sql/session/sql-session.ts';
import type { SqlStatements } from '../sql/sql-transaction.ts';
import { SqlTransaction, sqlStatements } from '../sql/sql-transaction.ts';
import { DatabaseLock } from './database-lock.ts';
import { GroupCommit } from './group-commit.ts';
import { migrate } from './migrate.ts';
import { NodeSqliteConnection } from './node-sqlite-connection.ts';
import { privateFile } from './private-file.ts';
import { sqliteQueryBuilder } from './sqlite-query-builder.ts';
import { WalSync } from './wal-sync.ts';

export interface SqliteStoreOptions {
  readonly path: string;
  /** The folder of the migrations, when it is not beside the code. */
  readonly migrations?: URL;
}

/** The whole process blocks while it waits for a lock; only a person with a database tool can hold one. */
const BUSY_TIMEOUT_MS = 1000;
const CACHE_KIB = 8_192;
/** 16 MB: the pages that every commit writes are then copied to the database once for hundreds of commits. */
const CHECKPOINT_PAGES = 4000;

/** Keeps all tables in one file, for one process. One connection writes; another reads what is committed. */
export class SqliteStore implements Store {
  readonly exclusive = true;
  readonly #lock: DatabaseLock;
  readonly #writerDatabase: DatabaseSync;
  readonly #writer: NodeSqliteConnection;
  readonly #readerDatabase: DatabaseSync;
  readonly #reader: NodeSqliteConnection;
  readonly #beginRead;
  readonly #endRead;
  readonly #statements: SqlStatements;
  readonly #wal: WalSync;
  readonly #group: GroupCommit;
  readonly #reads = new Mutex();
  readonly #listeners = new CommitListeners();
  #closed = false;

  private constructor(path: string, lock: DatabaseLock, writer: DatabaseSync, reader: DatabaseSync) {
    this.#lock = lock;
    this.#writerDatabase = writer;
    this.#writer = new NodeSqliteConnection(writer);
    this.#readerDatabase = reader;
    this.#reader = new NodeSqliteConnection(reader);
    this.#beginRead = reader.prepare('BEGIN');
    this.#endRead = reader.prepare('COMMIT');
    this.#statements = sqlStatements(sqliteQueryBuilder());
    this.#wal = new WalSync(`${path}-wal`);
    this.#group = new GroupCommit(writer, this.#wal, () => this.#writer.written);
  }

  /** Rejects with `SBX_STORE_BUSY` when another process has the database, and when its schema is not known here. */
  static async open({ path, migrations }: SqliteStoreOptions): Promise<SqliteStore> {
    const lock = DatabaseLock.acquire(path);
    const opened: DatabaseSync[] = [];
    try {
      privateFile(path);
      const writer = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: true });
      opened.push(writer);
      migrate(writer, migrations);
      // NORMAL syncs around checkpoints alone; `WalSync` makes every commit durable.
      writer.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -${CACHE_KIB};
        PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      const reader = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true });
      opened.push(reader);
      return new SqliteStore(path, lock, writer, reader);
    } catch (error) {
      for (const database of opened) database.close();
      lock.release();
      throw error;
    }
  }

  async transaction<T>(
    _label: string,
    work: (tx: Tx) => Promise<T>,
    { answersEarly }: TransactionOptions<T> = {},
  ): Promise<T> {
    if (this.#closed) throw storeClosed();
    let session: SqlSession | undefined;
    return await this.#group.submit(
      async () => {
        session = new SqlSession(this.#writer, true);
        try {
          return await work(new SqlTransaction(session, this.#statements));
        } finally {
          session.end();
        }
      },
      { whenDurable: () => session && this.#listeners.tell(session), answersEarly },
    );
  }

  /** Resolves, unless it answers early, when what it saw is on the disk. */
  async read<T>(
    _label: string,
    work: (tx: Tx) => Promise<T>,
    { answersEarly = false }: ReadOptions = {},
  ): Promise<T> {
    if (this.#closed) throw storeClosed();
    const turn = this.#reads.lock();
    try {
      if (turn) await turn;
      return await this.#readNow(work);
    } finally {
      this.#reads.unlock();
      const unsynced = answersEarly ? null : this.#wal.pending();
      if (unsynced) await unsynced.catch(() => {});
    }
  }

  onCommit(listener: (notice: CommitNotice) => void): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#group.settled();
    const turn = this.#reads.lock();
    if (turn) await turn;
    this.#readerDatabase.close();
    this.#writerDatabase.close();
    this.#wal.close();
    this.#lock.release();
  }

  async #readNow<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const session = new SqlSession(this.#reader, false);
    this.#beginRead.run();
    try {
      return await work(new SqlTransaction(session, this.#statements));
    } finally {
      session.end();
      this.#endRead.run();
    }
  }
}
