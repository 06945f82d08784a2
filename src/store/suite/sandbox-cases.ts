import assert from 'node:assert/strict';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { sampleDocuments, sampleSandbox, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, uidsOf, write } from './store-case.ts';

const FULL: SandboxRecord = sampleSandbox({
  uid: 'sbx_full',
  id: 'my-box',
  state: 'paused',
  pauseKind: 'frozen',
  reuseKey: 'scope:1',
  labels: { team: 'a', 'x/y': 'ü "quoted" \u{1f600}' },
  consumer: { actor: 'agt', harness: 'h', session_id: 's', run_id: 'r', job_id: 'j', agent_id: 'g' },
  keyId: 'key_1',
  elevated: true,
  exposedSecrets: ['TOKEN'],
  readyAt: T0 + 1,
  lastActivityAt: T0 + 2,
  idleReapSeconds: 60,
  idleDeadlineAt: T0 + 3,
  attempt: 2,
  extensionId: 'ext.local',
  hostId: 'host-1',
  isolation: 'gvisor',
  handle: { version: 3, data: { nested: [1, null, 'x', { y: true }] } },
  reachability: { exec_url: 'http://x', ssh: null, tunnel_ref: null, endpoints: [], services: [] },
  notes: ['one', 'two'],
  failure: { code: 'SBX_INTERNAL', detail: 'd', remedy: 'r', at: T0 },
  operation: {
    kind: 'pause',
    id: 'op1',
    requestedAt: T0,
    actor: 'adm',
    snapshotId: null,
    tries: 1,
    finishedAt: null,
    error: null,
  },
  recreating: true,
  lease: { owner: 'me', token: 't', until: T0 + 4 },
  workDueAt: T0 + 5,
  holdId: 'h',
  meterId: 'm',
  eventSeq: 7,
});

export const sandboxCases: StoreCase[] = [
  {
    name: 'gives back exactly what was put in',
    async run(store) {
      await write(store, (tx) => tx.sandboxes.insert(FULL));
      await write(store, (tx) => tx.sandboxes.insert(sampleSandbox({ uid: 'plain' })));
      assert.deepEqual(await read(store, (tx) => tx.sandboxes.get('sbx_full')), FULL);
      assert.deepEqual(await read(store, (tx) => tx.sandboxes.get('plain')), sampleSandbox({ uid: 'plain' }));
      const cleared = { ...sampleSandbox({ uid: FULL.uid, id: FULL.id }), version: FULL.version };
      const updated = await write(store, (tx) => tx.sandboxes.update(cleared));
      assert.deepEqual(updated, { ...cleared, version: FULL.version + 1 });
      assert.deepEqual(await read(store, (tx) => tx.sandboxes.get('sbx_full')), updated);
      const filled = await write(store, (tx) => tx.sandboxes.update({ ...FULL, version: updated.version }));
      assert.deepEqual(await read(store, (tx) => tx.sandboxes.get('sbx_full')), filled);
    },
  },
  {
    name: 'updates only the version that was read',
    async run(store) {
      await write(store, (tx) => tx.sandboxes.insert(sampleSandbox({ uid: 'a' })));
      const first = await write(store, async (tx) => {
        const row = await tx.sandboxes.get('a');
        assert.ok(row);
        return tx.sandboxes.update({ ...row, state: 'provisioning' });
      });
      assert.equal(first.version, 2);
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.sandboxes.update(sampleSandbox({ uid: 'a', state: 'failed' }))),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.sandboxes.update(sampleSandbox({ uid: 'none' }))),
      );
      const twice = await write(store, async (tx) => {
        const second = await tx.sandboxes.update({ ...first, state: 'ready' });
        await rejectsWith('SBX_CONFLICT', tx.sandboxes.update(first));
        return tx.sandboxes.update({ ...second, state: 'active' });
      });
      assert.equal(twice.version, 4);
      assert.equal((await read(store, (tx) => tx.sandboxes.get('a')))?.state, 'active');
    },
  },
  {
    name: 'keeps an id for one sandbox that is not destroyed, in each workspace',
    async run(store) {
      await write(store, async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a', id: 'box' }));
        await rejectsWith('SBX_ID_TAKEN', tx.sandboxes.insert(sampleSandbox({ uid: 'b', id: 'box' })));
        await rejectsWith('SBX_CONFLICT', tx.sandboxes.insert(sampleSandbox({ uid: 'a', id: 'other' })));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'c', id: 'box', workspaceId: 'w2' }));
        const a = await tx.sandboxes.get('a');
        assert.ok(a);
        await tx.sandboxes.update({ ...a, state: 'destroyed' });
        await tx.sandboxes.insert(sampleSandbox({ uid: 'b', id: 'box', createdAt: T0 + 1 }));
        const again = await tx.sandboxes.get('a');
        assert.ok(again);
        await rejectsWith('SBX_CONFLICT', tx.sandboxes.update({ ...again, state: 'requested' }));
      });
    },
  },
  {
    name: 'finds by uid first, then the one that is not destroyed, then the last created',
    async run(store) {
      await write(store, async (tx) => {
        const gone = { id: 'box', state: 'destroyed' } as const;
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a1', ...gone, createdAt: T0 + 1 }));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a3', ...gone, createdAt: T0 + 3 }));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a2', ...gone, createdAt: T0 + 2 }));
      });
      const found = (workspace: string | null, key: string) =>
        read(store, async (tx) => (await tx.sandboxes.find(workspace, key))?.uid ?? null);
      assert.equal(await found('default', 'box'), 'a3');
      assert.equal(await found(null, 'box'), 'a3');
      assert.equal(await found('default', 'a1'), 'a1');
      assert.equal(await found(null, 'a1'), 'a1');
      assert.equal(await found('w2', 'a1'), null);
      assert.equal(await found('w2', 'box'), null);
      assert.equal(await found(null, 'nothing'), null);
      await write(store, (tx) => tx.sandboxes.insert(sampleSandbox({ uid: 'a0', id: 'box', createdAt: T0 })));
      assert.equal(await found('default', 'box'), 'a0');
      await write(store, (tx) =>
        tx.sandboxes.insert(sampleSandbox({ uid: 'b1', id: 'box', workspaceId: 'w2' })),
      );
      assert.equal(await found(null, 'box'), null);
      assert.equal(await found('w2', 'box'), 'b1');
      await write(store, (tx) => tx.sandboxes.insert(sampleSandbox({ uid: 'c1', id: 'a2' })));
      assert.equal(await found('default', 'a2'), 'a2');
    },
  },
  {
    name: 'keeps a reuse key for one sandbox of a workspace',
    async run(store) {
      await write(store, async (tx) => {
        const { sandboxes } = tx;
        await sandboxes.insert(sampleSandbox({ uid: 'a', reuseKey: 'k' }));
        await rejectsWith('SBX_CONFLICT', sandboxes.insert(sampleSandbox({ uid: 'b', reuseKey: 'k' })));
        await sandboxes.insert(sampleSandbox({ uid: 'b' }));
        await sandboxes.insert(sampleSandbox({ uid: 'c', workspaceId: 'w2', reuseKey: 'k' }));
        const b = await sandboxes.get('b');
        assert.ok(b);
        await rejectsWith('SBX_CONFLICT', sandboxes.update({ ...b, reuseKey: 'k' }));
        const a = await sandboxes.get('a');
        assert.ok(a);
        assert.equal((await sandboxes.findReusable('default', 'k'))?.uid, 'a');
        await sandboxes.update({ ...a, reuseKey: null });
        assert.equal(await sandboxes.findReusable('default', 'k'), null);
        await sandboxes.update({ ...b, reuseKey: 'k' });
        assert.equal((await sandboxes.findReusable('default', 'k'))?.uid, 'b');
        assert.equal((await sandboxes.findReusable('w2', 'k'))?.uid, 'c');
      });
    },
  },
  {
    name: 'counts the rows in living states',
    async run(store) {
      const states = [
        'requested',
        'ready',
        'paused',
        'failed',
        'expired',
        'destroying',
        'destroyed',
      ] as const;
      await write(store, async (tx) => {
        for (const state of states) await tx.sandboxes.insert(sampleSandbox({ uid: state, state }));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'other', workspaceId: 'w2' }));
      });
      assert.equal(await read(store, (tx) => tx.sandboxes.countLiving('default')), 3);
      await write(store, async (tx) => {
        const row = await tx.sandboxes.get('ready');
        assert.ok(row);
        await tx.sandboxes.update({ ...row, state: 'failed' });
        assert.equal(await tx.sandboxes.countLiving('default'), 2);
      });
      assert.equal(await read(store, (tx) => tx.sandboxes.countLiving('nobody')), 0);
      const byState = await read(store, (tx) => tx.sandboxes.countByState());
      const expected = { requested: 2, paused: 1, failed: 2, expired: 1, destroying: 1 };
      assert.deepEqual(
        Object.fromEntries([...byState].sort()),
        Object.fromEntries(Object.entries(expected).sort()),
      );
    },
  },
  {
    name: 'has documents for each generation, written once',
    async run(store) {
      await write(store, async (tx) => {
        await tx.sandboxes.insertDocuments(sampleDocuments('a', 1));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a' }));
        await tx.sandboxes.insertDocuments(sampleDocuments('a', 2));
        await rejectsWith('SBX_CONFLICT', tx.sandboxes.insertDocuments(sampleDocuments('a', 2)));
      });
      assert.deepEqual(await read(store, (tx) => tx.sandboxes.documents('a', 2)), sampleDocuments('a', 2));
      assert.equal(await read(store, (tx) => tx.sandboxes.documents('a', 3)), null);
    },
  },
  {
    name: 'lists what is established on an extension, by uid',
    async run(store) {
      await write(store, async (tx) => {
        const on = { extensionId: 'ext.local' };
        for (const uid of ['d', 'b', 'c', 'a']) {
          await tx.sandboxes.insert(sampleSandbox({ uid, state: 'ready', ...on }));
        }
        await tx.sandboxes.insert(sampleSandbox({ uid: 'e', state: 'failed', ...on }));
        await tx.sandboxes.insert(sampleSandbox({ uid: 'f', state: 'active', extensionId: 'ext.other' }));
      });
      const page = (after: string | null, limit: number) =>
        read(store, async (tx) => uidsOf(await tx.sandboxes.establishedOn('ext.local', after, limit)));
      assert.deepEqual(await page(null, 3), ['a', 'b', 'c']);
      assert.deepEqual(await page('c', 3), ['d']);
      assert.deepEqual(await page('d', 3), []);
    },
  },
];
