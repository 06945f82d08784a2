import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { sampleEvent, sampleSandbox, sampleTransfer, T0 } from '../suite/sample-records.ts';
import { storeSuite } from '../suite/store-suite.ts';
import { SqliteStore } from './sqlite-store.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-store-'));
let count = 0;
const freshPath = () => join(root, `state-${count++}`, 'sandboxer.db');

afterAll(() => rmSync(root, { recursive: true, force: true }));

storeSuite('sqlite', () => SqliteStore.open({ path: freshPath() }), { describe, it });

describe('sqlite: files', () => {
  it('database files are readable by their owner alone', async () => {
    const path = freshPath();
    const store = await SqliteStore.open({ path });
    await store.transaction('t', (tx) => tx.setSetting('a', '1'));
    const modes = readdirSync(join(path, '..')).map((name) => [
      name,
      (statSync(join(path, '..', name)).mode & 0o777).toString(8),
    ]);
    expect(Object.fromEntries(modes)).toEqual({
      'sandboxer.db': '600',
      'sandboxer.db-shm': '600',
      'sandboxer.db-wal': '600',
      'sandboxer.db.lock': '600',
    });
    expect((statSync(join(path, '..')).mode & 0o777).toString(8)).toBe('700');
    await store.close();
  });

  it('database files hold everything when they are opened again', async () => {
    const path = freshPath();
    const first = await SqliteStore.open({ path });
    await first.transaction('t', async (tx) => {
      await tx.sandboxes.insert(sampleSandbox({ uid: 'a', labels: { team: 'x' } }));
      await tx.events.append([sampleEvent('a')]);
    });
    await first.close();
    const second = await SqliteStore.open({ path });
    expect(await second.read('r', (tx) => tx.sandboxes.get('a'))).toEqual(
      sampleSandbox({ uid: 'a', labels: { team: 'x' } }),
    );
    expect(await second.read('r', (tx) => tx.events.lastSeq())).toBe(1);
    expect(second.exclusive).toBe(true);
    await second.close();
  });
});

describe('sqlite: ledger', () => {
  it('the ledger cannot be changed, not even with SQL', async () => {
    const path = freshPath();
    const store = await SqliteStore.open({ path });
    await store.transaction('t', (tx) => tx.ledger.transfer([sampleTransfer('a')]));
    await store.close();
    const database = new DatabaseSync(path);
    expect(() => database.exec(`UPDATE transfers SET amount_micro_usd = 1`)).toThrow(/never changed/);
    expect(() => database.exec(`DELETE FROM transfers`)).toThrow(/never removed/);
    expect(() =>
      database.exec(`INSERT INTO transfers (id, at, kind, debit, credit, amount_micro_usd, workspace_id)
        VALUES ('b', 0, 'grant', 'x', 'y', 0, 'w')`),
    ).toThrow(/CHECK/);
    expect(database.prepare('SELECT count(*) AS n FROM transfers').get()).toEqual({ n: 1 });
    database.close();
  });
});

describe('sqlite: a failing database', () => {
  it('a failing database fails all of a group with a typed error, and works again afterwards', async () => {
    const path = freshPath();
    const store = await SqliteStore.open({ path });
    await store.transaction('t', (tx) => tx.setSetting('size', '1'));
    const full = new DatabaseSync(path);
    full.exec('BEGIN IMMEDIATE');
    full.exec(`INSERT INTO settings (name, value) VALUES ('other', 'process')`);
    // Another connection holds the write lock. In the product, no other connection of the process ever does.
    const refused = await Promise.allSettled(
      ['a', 'b', 'c'].map((name) => store.transaction('t', (tx) => tx.setSetting(name, '1'))),
    );
    for (const result of refused) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'SBX_INTERNAL' } });
    }
    full.exec('ROLLBACK');
    full.close();
    await store.transaction('t', (tx) => tx.setSetting('a', '2'));
    expect(await store.read('r', (tx) => tx.setting('a'))).toBe('2');
    expect(await store.read('r', (tx) => tx.setting('b'))).toBeNull();
    await store.close();
  });
});

describe('sqlite: group commit', () => {
  it('group commit shows a reader nothing of a group before all of it is durable', async () => {
    const store = await SqliteStore.open({ path: freshPath() });
    // A machine that is busy ends a group early; then both were alone, and it is tried again.
    for (let round = 0; ; round += 1) {
      expect(round).toBeLessThan(50);
      const name = `a${round}`;
      let firstIsDurable = false;
      let seen: string | null = null;
      const first = store
        .transaction('t', (tx) => tx.setSetting(name, '1'))
        .then(() => {
          firstIsDurable = true;
        });
      const second = store.transaction('t', async (tx) => {
        expect(await tx.setting(name)).toBe('1');
        seen = await store.read('r', (reader) => reader.setting(name));
        if (!firstIsDurable) expect(seen).toBeNull();
        throw new Error('no');
      });
      await first;
      await expect(second).rejects.toThrow('no');
      expect(await store.read('r', (tx) => tx.setting(name))).toBe('1');
      if (seen === null) break;
    }
    await store.close();
  });

  it('group commit runs more than one group when many wait', async () => {
    const store = await SqliteStore.open({ path: freshPath() });
    const uids = Array.from({ length: 300 }, (_, i) => `s${String(i).padStart(3, '0')}`);
    await Promise.all(
      uids.map((uid, i) =>
        store.transaction('t', (tx) => tx.sandboxes.insert(sampleSandbox({ uid, createdAt: T0 - i }))),
      ),
    );
    const page = await store.read('r', (tx) => tx.sandboxes.list({ workspaceId: 'default', limit: 999 }));
    expect(page.items.map(({ uid }) => uid)).toEqual(uids);
    await store.close();
  });
});
