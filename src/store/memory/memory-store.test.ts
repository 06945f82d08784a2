import { describe, expect, it } from 'vitest';
import { CHAIN_START, chained } from '../../core/credits/transfer.ts';
import { sampleEvent, sampleTransfer } from '../suite/sample-records.ts';
import { storeSuite } from '../suite/store-suite.ts';
import { memoryDatabase } from './memory-database.ts';
import { MemoryStore } from './memory-store.ts';

storeSuite('memory', async () => new MemoryStore(memoryDatabase()), { describe, it });

const forever = () => new Promise<void>(() => {});

describe('memory: several processes on one database', () => {
  it('a transaction waits for its hooks around the commit', async () => {
    const steps: string[] = [];
    const store = new MemoryStore(memoryDatabase(), {
      beforeCommit: async (label) => void steps.push(`before ${label}`),
      afterCommit: async (label) => void steps.push(`after ${label}`),
    });
    store.onCommit(() => steps.push('told'));
    await store.transaction('t', async (tx) => {
      steps.push('work');
      await tx.events.append([sampleEvent('a')]);
    });
    expect(steps).toEqual(['before t', 'work', 'told', 'after t']);
  });

  it('a transaction is committed while its caller does not know yet', async () => {
    const database = memoryDatabase();
    const dying = new MemoryStore(database, { afterCommit: forever });
    const other = new MemoryStore(database);
    void dying.transaction('t', (tx) => tx.setSetting('a', '1'));
    await other.transaction('t', (tx) => tx.setSetting('b', '1'));
    expect(await other.read('r', (tx) => tx.setting('a'))).toBe('1');
  });

  it('a transaction never blocks others in a hook, dead or alive', async () => {
    const database = memoryDatabase();
    const dying = new MemoryStore(database, { beforeCommit: forever });
    const other = new MemoryStore(database);
    let settled = false;
    const lost = dying
      .transaction('t', (tx) => tx.setSetting('a', '1'))
      .finally(() => {
        settled = true;
      });
    void lost;
    await other.transaction('t', (tx) => tx.setSetting('b', '1'));
    dying.abandon();
    await other.transaction('t', (tx) => tx.setSetting('b', '2'));
    expect(await other.read('r', (tx) => tx.setting('a'))).toBeNull();
    expect(settled).toBe(false);
  });

  it('a transaction does not commit after its process died, and sends no answer', async () => {
    const database = memoryDatabase();
    let release = () => {};
    const dying = new MemoryStore(database, {
      beforeCommit: () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    });
    let settled = 0;
    const count = () => {
      settled += 1;
    };
    void dying.transaction('a', (tx) => tx.setSetting('a', '1')).finally(count);
    void dying.transaction('b', (tx) => tx.setSetting('a', '2')).finally(count);
    await new Promise((resolve) => setImmediate(resolve));
    dying.abandon();
    release();
    void dying.read('r', async () => 1).finally(count);
    await new Promise((resolve) => setImmediate(resolve));
    const other = new MemoryStore(database);
    expect(await other.read('r', (tx) => tx.setting('a'))).toBeNull();
    expect(settled).toBe(0);
  });

  it('a process that dies in the middle of a transaction leaves no part of it', async () => {
    const database = memoryDatabase();
    const dying = new MemoryStore(database);
    const told: number[] = [];
    dying.onCommit(({ lastSeq }) => told.push(lastSeq));
    void dying.transaction('t', async (tx) => {
      await tx.events.append([sampleEvent('a')]);
      dying.abandon();
      await tx.events.append([sampleEvent('a')]);
    });
    const other = new MemoryStore(database);
    expect(await other.read('r', (tx) => tx.events.lastSeq())).toBe(0);
    await other.transaction('t', (tx) => tx.events.append([sampleEvent('a')]));
    expect(told).toEqual([]);
  });

  it('a commit reaches every living view', async () => {
    const database = memoryDatabase();
    const [one, two] = [new MemoryStore(database), new MemoryStore(database, { exclusive: false })];
    const told: string[] = [];
    one.onCommit(() => told.push('one'));
    two.onCommit(() => told.push('two'));
    await one.transaction('t', (tx) => tx.events.append([sampleEvent('a')]));
    expect(told).toEqual(['one', 'two']);
    expect([one.exclusive, two.exclusive]).toEqual([true, false]);
  });

  it('memoryDatabase: transfers() returns every row of the ledger', async () => {
    const database = memoryDatabase();
    const store = new MemoryStore(database);
    await store.transaction('t', (tx) => tx.ledger.transfer([sampleTransfer('a')]));
    expect(database.transfers()).toEqual([chained(sampleTransfer('a'), 1, CHAIN_START)]);
  });
});
