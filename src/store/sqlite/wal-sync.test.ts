import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { GroupCommit } from './group-commit.ts';
import { NodeSqliteConnection } from './node-sqlite-connection.ts';
import { WalSync } from './wal-sync.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-wal-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A file that can be opened and not be synced. */
const UNSYNCED = '/dev/null';

describe('WalSync', () => {
  it('WalSync serves in order, and has nothing pending afterwards', async () => {
    const path = join(root, 'wal');
    const wal = new WalSync(path);
    expect(wal.pending()).toBeNull();
    writeFileSync(path, 'x');
    const order: number[] = [];
    await Promise.all([1, 2, 3, 4].map((n) => wal.sync().then(() => order.push(n))));
    expect(order).toEqual([1, 2, 3, 4]);
    expect(wal.pending()).toBeNull();
    wal.close();
  });

  it('WalSync takes no write after the disk has failed once', async () => {
    const wal = new WalSync(UNSYNCED);
    const both = await Promise.allSettled([wal.sync(), wal.sync()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(wal.failure).not.toBeNull();
    await expect(wal.sync()).rejects.toThrow();
    wal.close();
  });
});

describe('a write without a waiter', () => {
  it('a write without a waiter is put off until a waiter comes', async () => {
    const wal = new WalSync(UNSYNCED);
    const put = wal.soon();
    put.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(wal.failure).toBeNull();
    await expect(wal.pending()).rejects.toThrow();
    await expect(put).rejects.toThrow();
    expect(wal.failure).not.toBeNull();
    wal.close();
  });

  it('a write without a waiter is synced with a later one that has a waiter, and by itself after a while', async () => {
    const path = join(root, 'soon');
    writeFileSync(path, 'x');
    const wal = new WalSync(path);
    const order: string[] = [];
    const both = [wal.soon().then(() => order.push('soon')), wal.sync().then(() => order.push('sync'))];
    await Promise.all(both);
    expect(order).toEqual(['soon', 'sync']);
    await wal.soon();
    expect(wal.pending()).toBeNull();
    wal.close();
  });
});

const INSERT = 'INSERT INTO t VALUES (1)';

describe('the change counter of a connection', () => {
  it('the change counter grows by a change, also one that returns rows, and by nothing else', () => {
    const database = new DatabaseSync(':memory:');
    database.exec('CREATE TABLE t (n INTEGER)');
    const connection = new NodeSqliteConnection(database);
    const grows = (work: () => unknown) => {
      const before = connection.written;
      work();
      return connection.written > before;
    };
    expect(grows(() => connection.run(INSERT, []))).toBe(true);
    expect(grows(() => connection.all('UPDATE t SET n = 2 RETURNING n', []))).toBe(true);
    expect(grows(() => connection.run('UPDATE t SET n = 3 WHERE n = 7', []))).toBe(false);
    expect(grows(() => connection.all('SELECT n FROM t', []))).toBe(false);
    expect(connection.all('SELECT n, n + 1 AS "more" FROM t', [])).toEqual([{ n: 2, more: 3 }]);
    database.close();
  });
});

describe('a transaction that answers early', () => {
  it('a transaction that answers early continues before the disk, and is notified when the disk has it', async () => {
    const database = new DatabaseSync(join(root, 'early.db'));
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)');
    const connection = new NodeSqliteConnection(database);
    const wal = new WalSync(join(root, 'early.db-wal'));
    const group = new GroupCommit(database, wal, () => connection.written);
    const told: string[] = [];
    const write = (name: string, early: boolean) =>
      group.submit(async () => connection.run(INSERT, []), {
        whenDurable: () => told.push(name),
        answersEarly: () => early,
      });
    await write('first', true);
    expect(told).toEqual([]);
    await write('second', false);
    expect(told).toEqual(['first', 'second']);
    await write('third', true);
    await group.settled();
    expect(told).toEqual(['first', 'second', 'third']);
    wal.close();
    database.close();
  });

  it('a transaction that answers early does not when it failed', async () => {
    const database = new DatabaseSync(join(root, 'refused.db'));
    const group = new GroupCommit(database, new WalSync(UNSYNCED), () => 0);
    const refused = group.submit(() => Promise.reject(new Error('no')), {
      whenDurable: () => {},
      answersEarly: () => true,
    });
    await expect(refused).rejects.toThrow('no');
    database.close();
  });
});

describe('a transaction that cannot say whether it answers early', () => {
  it('a transaction that cannot say whether it answers early fails alone, and leaves nothing behind', async () => {
    const database = new DatabaseSync(join(root, 'unsure.db'));
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)');
    const connection = new NodeSqliteConnection(database);
    const wal = new WalSync(join(root, 'unsure.db-wal'));
    const group = new GroupCommit(database, wal, () => connection.written);
    const write = (answersEarly: () => boolean) =>
      group.submit(async () => connection.run(INSERT, []), { whenDurable: () => {}, answersEarly });
    const unsure = () => JSON.parse('not a document') === true;
    const [refused, beside] = await Promise.allSettled([write(unsure), write(() => false)]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { name: 'SyntaxError' } });
    expect(beside.status).toBe('fulfilled');
    await expect(write(unsure)).rejects.toThrow(SyntaxError);
    await write(() => true);
    await group.settled();
    expect(database.prepare('SELECT count(*) AS n FROM t').get()).toMatchObject({ n: 2 });
    wal.close();
    database.close();
  });
});

describe('a group whose commit does not reach the disk', () => {
  it('fails, and so does everything after it', async () => {
    const database = new DatabaseSync(join(root, 'state.db'));
    database.exec('CREATE TABLE t (n INTEGER)');
    const connection = new NodeSqliteConnection(database);
    const group = new GroupCommit(database, new WalSync(UNSYNCED), () => connection.written);
    let told = 0;
    const write = () =>
      group.submit(async () => connection.run(INSERT, []), {
        whenDurable: () => {
          told += 1;
        },
      });
    const first = await Promise.allSettled([write(), write()]);
    for (const result of first)
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'SBX_INTERNAL' } });
    const rows = () => database.prepare('SELECT count(*) AS n FROM t').get();
    const before = rows();
    await expect(write()).rejects.toMatchObject({ code: 'SBX_INTERNAL' });
    expect(rows()).toEqual(before);
    expect(told).toBe(0);
    await group.settled();
    database.close();
  });
});
