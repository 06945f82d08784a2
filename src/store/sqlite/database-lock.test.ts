import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { StoreProcess } from '../suite/store-process.ts';
import { startStoreProcess } from '../suite/store-process.ts';
import { SqliteStore } from './sqlite-store.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-lock-'));
let count = 0;
const freshPath = () => join(root, `state-${count++}`, 'sandboxer.db');

const started: StoreProcess[] = [];
function start(...args: Parameters<typeof startStoreProcess>): StoreProcess {
  const child = startStoreProcess(...args);
  started.push(child);
  return child;
}

afterEach(() => {
  for (const child of started.splice(0)) child.kill();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('one process per database', () => {
  it('the database lock refuses a second store, in this process and in another, until the first is closed', async () => {
    const path = freshPath();
    const store = await SqliteStore.open({ path });
    await expect(SqliteStore.open({ path })).rejects.toMatchObject({ code: 'SBX_STORE_BUSY' });
    const other = start(path, 'open');
    expect(await other.line()).toBe('SBX_STORE_BUSY');
    await other.exited;
    await store.transaction('t', (tx) => tx.setSetting('still', 'mine'));
    await store.close();
    const second = await SqliteStore.open({ path });
    expect(await second.read('r', (tx) => tx.setting('still'))).toBe('mine');
    await second.close();
  });

  it('the database lock is free again as soon as its holder is killed', async () => {
    const path = freshPath();
    const holder = start(path, 'open');
    expect(await holder.line()).toBe('open');
    await expect(SqliteStore.open({ path })).rejects.toMatchObject({ code: 'SBX_STORE_BUSY' });
    holder.kill();
    await holder.exited;
    const store = await SqliteStore.open({ path });
    await store.close();
  });
});

describe('durability', () => {
  it('the store keeps every acknowledged write when the process is killed', async () => {
    for (let round = 0; round < 3; round++) {
      const path = freshPath();
      const writer = start(path, 'write');
      let acknowledged = 0;
      while (acknowledged < 40 + round * 17) acknowledged = Number(await writer.line());
      writer.kill();
      acknowledged = Math.max(acknowledged, ...(await writer.rest()).map(Number));
      const store = await SqliteStore.open({ path });
      const events = await store.read('r', (tx) =>
        tx.events.list({ workspaceId: null, after: 0, limit: 99_999 }),
      );
      // Each transaction wrote a sandbox and its event, or neither.
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
      expect(events.length).toBeGreaterThanOrEqual(acknowledged);
      const living = await store.read('r', (tx) => tx.sandboxes.countLiving('default'));
      expect(living).toBe(events.length);
      await store.close();
    }
  });
});
