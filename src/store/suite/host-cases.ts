import assert from 'node:assert/strict';
import type { HostRecord } from '../../core/hosts/host.ts';
import { UNPROBED } from '../../core/hosts/host.ts';
import { sampleAttempt, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

function sampleHost(id: string): HostRecord {
  return {
    id,
    version: 1,
    source: 'api',
    spec: {
      id,
      class: 'sandbox',
      ssh: { destination: 'h.example', host_keys: ['ssh-ed25519 AAAA'], jump: [] },
      extensions: [],
      labels: { a: 'b' },
      isolation: [],
      capacity: { sandboxes: 2, cpu: 1.5, memory_mb: null },
      cost_micro_usd_per_hour: 12_000,
    },
    state: 'active',
    health: UNPROBED,
    createdAt: T0,
  };
}

export const hostCases: StoreCase[] = [
  {
    name: 'are kept, changed only in the version that was read, and removed',
    async run(store) {
      const host = sampleHost('b');
      await write(store, (tx) => tx.hosts.insert(host));
      await write(store, (tx) => tx.hosts.insert(sampleHost('a')));
      assert.deepEqual(await read(store, (tx) => tx.hosts.get('b')), host);
      assert.deepEqual(
        (await read(store, (tx) => tx.hosts.list())).map(({ id }) => id),
        ['a', 'b'],
      );
      const next = await write(store, (tx) => tx.hosts.update({ ...host, state: 'draining' }));
      assert.equal(next.version, 2);
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.hosts.update(host)),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.hosts.insert(host)),
      );
      await write(store, (tx) => tx.hosts.remove('b'));
      assert.equal(await read(store, (tx) => tx.hosts.get('b')), null);
    },
  },
  {
    name: 'have figures over time, newest first, which are pruned by age',
    async run(store) {
      await write(store, async ({ hosts }) => {
        for (const n of [3, 1, 2])
          await hosts.addSample({ hostId: 'a', kind: 'canary', at: T0 + n, data: { n, ok: true } });
        await hosts.addSample({ hostId: 'a', kind: 'probe', at: T0 + 1, data: { n: 9 } });
        await hosts.addSample({ hostId: 'a', kind: 'canary', at: T0 + 3, data: { n: 33 } });
      });
      const series = async (limit: number) =>
        (await read(store, (tx) => tx.hosts.samples('a', 'canary', limit))).map(({ data }) => data.n);
      assert.deepEqual(await series(9), [33, 2, 1]);
      assert.deepEqual(await series(2), [33, 2]);
      assert.equal(await write(store, (tx) => tx.hosts.pruneSamples(T0 + 3, 1)), 1);
      assert.equal(await write(store, (tx) => tx.hosts.pruneSamples(T0 + 3, 9)), 2);
      assert.deepEqual(await series(9), [33]);
    },
  },
  {
    name: 'are tried by canaries, which are known until nothing of them is left',
    async run(store) {
      const canary = { attemptId: 'c1', sandboxUid: 'u1', hostId: 'h', extensionId: 'ext.x', startedAt: T0 };
      await write(store, (tx) => tx.canaries.insert(canary));
      await write(store, (tx) => tx.canaries.insert({ ...canary, attemptId: 'c0' }));
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.canaries.insert(canary)),
      );
      assert.deepEqual(await read(store, (tx) => tx.canaries.get('c1')), canary);
      assert.deepEqual(
        (await read(store, (tx) => tx.canaries.list())).map(({ attemptId }) => attemptId),
        ['c0', 'c1'],
      );
      await write(store, (tx) => tx.canaries.remove('c1'));
      await write(store, (tx) => tx.canaries.remove('c1'));
      assert.equal(await read(store, (tx) => tx.canaries.get('c1')), null);
    },
  },
  {
    name: 'carry what the attempts on them reserve until they are gone',
    async run(store) {
      const reserved = { millicpu: 500, memoryMb: 256 };
      await write(store, async ({ attempts }) => {
        for (const [n, state] of (['journalled', 'won', 'condemned', 'gone'] as const).entries())
          await attempts.insert(sampleAttempt('s', { attemptId: `a${n}`, n, state, hostId: 'h', reserved }));
        await attempts.insert(sampleAttempt('s', { attemptId: 'x', n: 8, state: 'won', hostId: null }));
        await attempts.insert(
          sampleAttempt('s', { attemptId: 'y', n: 9, state: 'won', hostId: 'other', reserved }),
        );
      });
      assert.deepEqual(await read(store, (tx) => tx.attempts.hostLoads()), {
        h: { sandboxes: 3, millicpu: 1500, memoryMb: 768 },
        other: { sandboxes: 1, millicpu: 500, memoryMb: 256 },
      });
      assert.deepEqual(await read(store, (tx) => tx.attempts.hostLoads(['h', 'empty'])), {
        h: { sandboxes: 3, millicpu: 1500, memoryMb: 768 },
      });
      assert.deepEqual(await read(store, (tx) => tx.attempts.hostLoads([])), {});
      const there = async (limit: number) =>
        (await read(store, (tx) => tx.attempts.onHost('h', limit))).map(({ attemptId }) => attemptId);
      assert.deepEqual(await there(9), ['a2', 'a1', 'a0']);
      assert.deepEqual(await there(1), ['a2']);
    },
  },
];
