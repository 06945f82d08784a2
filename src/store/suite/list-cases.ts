import assert from 'node:assert/strict';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SandboxQuery } from '../../core/ports/store/sandbox-store.ts';
import type { Store } from '../../core/ports/store/store.ts';
import { sampleSandbox, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, uidsOf, write } from './store-case.ts';

function insertAll(store: Store, rows: readonly Partial<SandboxRecord>[]): Promise<void> {
  return write(store, async (tx) => {
    for (const row of rows) await tx.sandboxes.insert(sampleSandbox(row));
  });
}

async function list(store: Store, query: Partial<SandboxQuery>): Promise<string[]> {
  const page = await read(store, (tx) => tx.sandboxes.list({ workspaceId: 'default', limit: 99, ...query }));
  return uidsOf(page.items);
}

export const listCases: StoreCase[] = [
  {
    name: 'gives the newest first, and of the same age by uid',
    async run(store) {
      await insertAll(store, [
        { uid: 'b', createdAt: T0 + 1, state: 'destroyed' },
        { uid: 'a', createdAt: T0 + 1, state: 'ready' },
        { uid: 'd', createdAt: T0 },
        { uid: 'c', createdAt: T0 + 2, state: 'failed' },
        { uid: 'x', createdAt: T0 + 9, workspaceId: 'w2' },
      ]);
      assert.deepEqual(await list(store, {}), ['c', 'b', 'a', 'd']);
      assert.deepEqual(await list(store, { workspaceId: null }), ['x', 'c', 'b', 'a', 'd']);
      assert.deepEqual(await list(store, { workspaceId: 'nobody' }), []);
    },
  },
  {
    name: 'filters by everything that a query may name',
    async run(store) {
      await insertAll(store, [
        { uid: 'a', state: 'ready', extensionId: 'ext.one', consumer: { harness: 'h', session_id: 'x' } },
        { uid: 'b', state: 'failed', profileId: 'profile.other', consumer: { harness: 'h', run_id: 'x' } },
        { uid: 'c', labels: { team: 'a', tier: '1' }, consumer: { job_id: 'x', session_id: 'x' } },
        { uid: 'd', labels: { team: 'a', tier: '2' }, workspaceId: 'w2', consumer: { agent_id: 'x' } },
        { uid: 'e', labels: { team: 'b', tier: '1' }, state: 'ready' },
      ]);
      assert.deepEqual(await list(store, { states: ['ready'] }), ['e', 'a']);
      assert.deepEqual(await list(store, { states: ['failed', 'ready'] }), ['e', 'b', 'a']);
      assert.deepEqual(await list(store, { states: [] }), []);
      assert.deepEqual(await list(store, { workspaceId: null, states: ['ready', 'failed'] }), [
        'e',
        'b',
        'a',
      ]);
      assert.deepEqual(await list(store, { profileId: 'profile.other' }), ['b']);
      assert.deepEqual(await list(store, { extensionId: 'ext.one' }), ['a']);
      assert.deepEqual(await list(store, { harness: 'h' }), ['b', 'a']);
      assert.deepEqual(await list(store, { externalId: 'x' }), ['c', 'b', 'a']);
      assert.deepEqual(await list(store, { externalId: 'x', states: ['failed', 'ready'] }), ['b', 'a']);
      assert.deepEqual(await list(store, { externalId: 'x', labels: { team: 'a' } }), ['c']);
      assert.deepEqual(await list(store, { labels: { team: 'a' } }), ['c']);
      assert.deepEqual(await list(store, { workspaceId: null, labels: { team: 'a' } }), ['d', 'c']);
      assert.deepEqual(await list(store, { labels: { tier: '1' } }), ['e', 'c']);
      assert.deepEqual(await list(store, { labels: { tier: '1' }, states: ['ready'] }), ['e']);
      assert.deepEqual(await list(store, { labels: { tier: '1', team: 'a' } }), ['c']);
      assert.deepEqual(await list(store, { labels: { tier: '1', team: 'c' } }), []);
      assert.deepEqual(await list(store, { labels: {} }), ['e', 'c', 'b', 'a']);
    },
  },
  {
    name: 'filters by the labels that a sandbox has now',
    async run(store) {
      await insertAll(store, [{ uid: 'a', labels: { team: 'a', old: 'x' } }]);
      await write(store, async (tx) => {
        const row = await tx.sandboxes.get('a');
        assert.ok(row);
        await tx.sandboxes.update({ ...row, labels: { team: 'b' } });
      });
      assert.deepEqual(await list(store, { labels: { team: 'a' } }), []);
      assert.deepEqual(await list(store, { labels: { old: 'x' } }), []);
      assert.deepEqual(await list(store, { labels: { team: 'b' } }), ['a']);
    },
  },
  {
    name: 'pages without a gap or a repetition while rows are inserted and change state',
    async run(store) {
      const label = { labels: { l: '1' }, consumer: { run_id: 'r' } };
      await insertAll(
        store,
        Array.from({ length: 25 }, (_, i) => ({
          uid: `s${String(i).padStart(2, '0')}`,
          createdAt: T0 + Math.floor(i / 3),
          ...label,
        })),
      );
      const before = await list(store, {});
      for (const filter of [{}, { workspaceId: null }, { labels: { l: '1' } }, { externalId: 'r' }]) {
        const seen: string[] = [];
        let cursor: string | null = null;
        for (let n = 0; ; n++) {
          const query: SandboxQuery = { workspaceId: 'default', limit: 7, cursor, ...filter };
          const page = await read(store, (tx) => tx.sandboxes.list(query));
          seen.push(...uidsOf(page.items));
          cursor = page.nextCursor;
          if (cursor === null) break;
          assert.equal(page.items.length, 7);
          const uid = `new${n}-${Object.keys(filter).join()}`;
          await insertAll(store, [{ uid, createdAt: T0 + 1000 + n, ...label }]);
          await write(store, async (tx) => {
            const row = await tx.sandboxes.get(before[n * 7 + 9] ?? 'none');
            if (row) await tx.sandboxes.update({ ...row, state: 'failed' });
          });
        }
        assert.deepEqual(
          seen.filter((uid) => uid.startsWith('s')),
          before,
        );
        assert.equal(new Set(seen).size, seen.length);
      }
    },
  },
  {
    name: 'says there is no more exactly at the end',
    async run(store) {
      await insertAll(store, [{ uid: 'a' }, { uid: 'b' }, { uid: 'c' }]);
      const page = (limit: number) =>
        read(store, async (tx) => (await tx.sandboxes.list({ workspaceId: 'default', limit })).nextCursor);
      assert.equal(await page(3), null);
      assert.equal(await page(4), null);
      assert.notEqual(await page(2), null);
    },
  },
  {
    name: 'refuses a cursor that it did not give out',
    async run(store) {
      for (const cursor of ['', '?', 'bm9wZQ']) {
        await rejectsWith('SBX_INVALID_REQUEST', list(store, { cursor }));
      }
    },
  },
];
