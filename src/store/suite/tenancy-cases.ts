import assert from 'node:assert/strict';
import type { PushedProfile } from '../../core/ports/store/profile-store.ts';
import type { QuoteRecord } from '../../core/routing/quote.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import { T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

function key(id: string, over: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id,
    workspaceId: 'default',
    name: 'n',
    secretHash: `hash-${id}`,
    number: Number(/\d+/.exec(id)?.[0] ?? 0),
    rotatedFrom: null,
    lines: [id],
    budgetLine: id,
    actor: 'agt',
    scopes: [],
    createdAt: T0,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    ...over,
  };
}

function pushed(workspaceId: string, id: string, version: string): PushedProfile {
  const profile = { id, version } as PushedProfile['profile'];
  return { workspaceId, profile, source: { id, 'extra field': [1] }, createdAt: T0 };
}

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

export const tenancyCases: StoreCase[] = [
  {
    name: 'keeps what a workspace allows, and takes it away',
    async run(store) {
      const workspace = { id: 'w', orgId: 'default', name: 'w', createdAt: T0 };
      const policy = { only: ['ext.local'], constraints: { region: 'eu', max_cost_per_hour: 0.5 } };
      await write(store, (tx) => tx.tenancy.insertWorkspace({ ...workspace, policy }));
      assert.deepEqual(await read(store, (tx) => tx.tenancy.workspace('w')), { ...workspace, policy });
      await write(store, (tx) => tx.tenancy.updateWorkspace(workspace));
      assert.deepEqual(await read(store, (tx) => tx.tenancy.workspace('w')), workspace);
    },
  },
  {
    name: 'keeps quotes until some time after they expire',
    async run(store) {
      const quote = (id: string, expiresAt: number) =>
        ({ id, workspaceId: 'w', createdAt: T0, expiresAt, prices: {}, plan: {} }) as unknown as QuoteRecord;
      await write(store, async (tx) => {
        await tx.quotes.insert(quote('a', T0 + 1));
        await tx.quotes.insert(quote('b', T0 + 2));
        await tx.quotes.insert(quote('c', T0 + 3));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.quotes.insert(quote('a', T0))),
      );
      assert.deepEqual(await read(store, (tx) => tx.quotes.get('b')), quote('b', T0 + 2));
      assert.equal(await write(store, (tx) => tx.quotes.prune(T0 + 3, 1)), 1);
      assert.equal(await write(store, (tx) => tx.quotes.prune(T0 + 3, 5)), 1);
      assert.equal(await read(store, (tx) => tx.quotes.get('b')), null);
      assert.deepEqual(await read(store, (tx) => tx.quotes.get('c')), quote('c', T0 + 3));
    },
  },
  {
    name: 'keeps orgs and workspaces',
    async run(store) {
      const org = { id: 'o', name: 'Org', createdAt: T0 };
      const workspace = (id: string, orgId: string) => ({ id, orgId, name: id, createdAt: T0 });
      await write(store, async (tx) => {
        await tx.tenancy.insertOrg(org);
        await tx.tenancy.insertWorkspace(workspace('b', 'o'));
        await tx.tenancy.insertWorkspace(workspace('a', 'o'));
        await tx.tenancy.insertWorkspace(workspace('c', 'p'));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.tenancy.insertOrg(org)),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.tenancy.insertWorkspace(workspace('a', 'p'))),
      );
      await read(store, async ({ tenancy }) => {
        assert.deepEqual(await tenancy.org('o'), org);
        assert.equal(await tenancy.org('none'), null);
        assert.deepEqual(await tenancy.workspace('a'), workspace('a', 'o'));
        assert.deepEqual(idsOf(await tenancy.workspaces('o')), ['a', 'b']);
        assert.deepEqual(idsOf(await tenancy.workspaces(null)), ['a', 'b', 'c']);
      });
    },
  },
  {
    name: 'keeps keys, by id and by the hash of their secret',
    async run(store) {
      const revoked = key('k1', { revokedAt: T0 + 5, lastUsedAt: T0 + 4, expiresAt: T0 + 9 });
      await write(store, async (tx) => {
        await tx.tenancy.insertKey(key('k2', { createdAt: T0 + 1 }));
        await tx.tenancy.insertKey(key('k1'));
        await tx.tenancy.insertKey(key('k3', { workspaceId: 'w2' }));
        await tx.tenancy.updateKey(revoked);
      });
      const refused = [key('k1', { secretHash: 'x' }), key('k9', { secretHash: 'hash-k1' })];
      for (const record of refused) {
        await rejectsWith(
          'SBX_CONFLICT',
          write(store, (tx) => tx.tenancy.insertKey(record)),
        );
      }
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.tenancy.updateKey(key('none'))),
      );
      await read(store, async ({ tenancy }) => {
        assert.deepEqual(await tenancy.key('k1'), revoked);
        assert.deepEqual(await tenancy.keyByHash('hash-k1'), revoked);
        assert.equal(await tenancy.keyByHash('none'), null);
        assert.deepEqual(await tenancy.keyByNumber(1), revoked);
        assert.equal(await tenancy.keyByNumber(9), null);
        assert.equal(await tenancy.lastKeyNumber(), 3);
        assert.deepEqual(idsOf(await tenancy.keys('default')), ['k1', 'k2']);
        assert.deepEqual(idsOf(await tenancy.keys(null)), ['k1', 'k3', 'k2']);
      });
    },
  },
  {
    name: 'keeps profiles as they were pushed, each version once',
    async run(store) {
      await write(store, async (tx) => {
        await tx.profiles.insert(pushed('default', 'profile.b', '1.0.0'));
        await tx.profiles.insert(pushed('default', 'profile.a', '2.0.0'));
        await tx.profiles.insert(pushed('default', 'profile.a', '1.0.0'));
        await tx.profiles.insert(pushed('w2', 'profile.a', '1.0.0'));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.profiles.insert(pushed('w2', 'profile.a', '1.0.0'))),
      );
      const list = (workspaceId: string | null) =>
        read(store, async (tx) =>
          (await tx.profiles.list(workspaceId)).map(({ profile }) => `${profile.id}@${profile.version}`),
        );
      assert.deepEqual(await list('default'), ['profile.a@1.0.0', 'profile.a@2.0.0', 'profile.b@1.0.0']);
      assert.equal((await list(null)).length, 4);
      assert.deepEqual(
        await read(store, (tx) => tx.profiles.get('w2', 'profile.a', '1.0.0')),
        pushed('w2', 'profile.a', '1.0.0'),
      );
      assert.equal(await read(store, (tx) => tx.profiles.get('w2', 'profile.b', '1.0.0')), null);
    },
  },
  {
    name: 'keeps settings',
    async run(store) {
      assert.equal(await read(store, (tx) => tx.setting('owner')), null);
      await write(store, (tx) => tx.setSetting('owner', 'one'));
      await write(store, (tx) => tx.setSetting('owner', 'two'));
      assert.equal(await read(store, (tx) => tx.setting('owner')), 'two');
    },
  },
];
