import assert from 'node:assert/strict';
import type { WebhookRecord } from '../../core/events/webhook.ts';
import type { AuditDraft } from '../../core/tenancy/audit.ts';
import { T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

function webhook(id: string, over: Partial<WebhookRecord> = {}): WebhookRecord {
  return {
    id,
    workspaceId: 'default',
    version: 1,
    url: 'https://example.test/hook',
    types: null,
    description: '',
    sealedSecret: 'sealed',
    previousSecret: null,
    createdAt: T0,
    enabledAt: T0,
    disabled: null,
    eventSeq: 0,
    ...over,
  };
}

function audit(over: Partial<AuditDraft> = {}): AuditDraft {
  return {
    at: T0,
    workspaceId: 'default',
    keyId: 'key_1',
    actor: 'adm',
    consumer: { harness: 'h' },
    action: 'createKey',
    target: 'key_2',
    outcome: 'ok',
    requestId: 'req_1',
    details: { a: 1 },
    ...over,
  };
}

const parked = (seq: number, over: object = {}) => ({
  sinkId: 'a',
  seq,
  subject: `s${seq}`,
  tries: 1,
  nextAt: T0,
  lastError: `error ${seq}`,
  dead: false,
  ...over,
});

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
const seqsOf = (rows: readonly { readonly seq: number }[]) => rows.map(({ seq }) => seq);

export const webhookCases: StoreCase[] = [
  {
    name: 'keeps webhooks, changed by compare-and-set',
    async run(store) {
      const full = webhook('w1', {
        types: ['sandbox.ready'],
        previousSecret: { sealed: 'old', until: T0 + 9 },
        disabled: { at: T0 + 1, reason: 'no answer' },
        createdAt: T0 + 5,
      });
      await write(store, async (tx) => {
        await tx.webhooks.insert(full);
        await tx.webhooks.insert(webhook('w2'));
        await tx.webhooks.insert(webhook('w3', { workspaceId: 'other' }));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.webhooks.insert(webhook('w1'))),
      );
      assert.deepEqual(await read(store, (tx) => tx.webhooks.get('w1')), full);
      const changed = await write(store, (tx) =>
        tx.webhooks.update({ ...full, types: null, disabled: null }),
      );
      assert.equal(changed.version, 2);
      assert.deepEqual(await read(store, (tx) => tx.webhooks.get('w1')), changed);
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.webhooks.update(full)),
      );
      assert.deepEqual(idsOf(await read(store, (tx) => tx.webhooks.list('default'))), ['w2', 'w1']);
      assert.deepEqual(idsOf(await read(store, (tx) => tx.webhooks.list(null))), ['w2', 'w3', 'w1']);
      await write(store, (tx) => tx.webhooks.remove('w1'));
      await write(store, (tx) => tx.webhooks.remove('none'));
      assert.equal(await read(store, (tx) => tx.webhooks.get('w1')), null);
    },
  },
  {
    name: 'knows which sinks are active and when they last took something',
    async run(store) {
      await write(store, async (tx) => {
        await tx.outbox.setCursor({ sinkId: 'b', cursor: 3 });
        await tx.outbox.setCursor({ sinkId: 'a', cursor: 7 });
        await tx.outbox.setActive('b', false);
        await tx.outbox.setTaken('b', T0);
        await tx.outbox.setActive('none', true);
      });
      const b = { sinkId: 'b', cursor: 4, active: false, takenAt: T0 };
      await write(store, (tx) => tx.outbox.setCursor({ sinkId: 'b', cursor: 4 }));
      await read(store, async ({ outbox }) => {
        assert.deepEqual(await outbox.sink('b'), b);
        assert.equal(await outbox.sink('none'), null);
        assert.deepEqual(await outbox.sinks(), [{ sinkId: 'a', cursor: 7, active: true, takenAt: null }, b]);
        assert.equal(await outbox.minCursor(), 7);
      });
      await write(store, (tx) => tx.outbox.setActive('b', true));
      assert.equal(await read(store, (tx) => tx.outbox.minCursor()), 4);
    },
  },
  {
    name: 'counts, pages and forgets parked deliveries',
    async run(store) {
      await write(store, async ({ outbox }) => {
        await outbox.park(parked(1, { dead: true, tries: 9, nextAt: T0 + 1 }));
        await outbox.park(parked(2, { dead: true, tries: 9, nextAt: T0 + 5 }));
        await outbox.park(parked(3, { tries: 2 }));
        await outbox.park(parked(4, { tries: 0 }));
        await outbox.park(parked(5, { sinkId: 'b' }));
      });
      await read(store, async ({ outbox }) => {
        assert.deepEqual(seqsOf(await outbox.waiting('a')), [3, 4]);
        const counts = { waiting: 2, dead: 2, deadSince: 1, lastError: 'error 3' };
        assert.deepEqual(await outbox.parkedCounts('a', T0 + 1), counts);
        const none = { waiting: 0, dead: 0, deadSince: 0, lastError: null };
        assert.deepEqual(await outbox.parkedCounts('none', 0), none);
        const page = (query: { dead?: boolean; after: number; limit: number }) =>
          outbox.parkedPage({ sinkId: 'a', ...query });
        assert.deepEqual(seqsOf(await page({ after: 1, limit: 2 })), [2, 3]);
        assert.deepEqual(seqsOf(await page({ dead: true, after: 0, limit: 9 })), [1, 2]);
        assert.deepEqual(seqsOf(await page({ dead: false, after: 3, limit: 9 })), [4]);
      });
      assert.equal(await write(store, (tx) => tx.outbox.pruneDead(T0 + 5, 9)), 1);
      assert.deepEqual(seqsOf(await read(store, (tx) => tx.outbox.parked('a'))), [2, 3, 4]);
    },
  },
  {
    name: 'keeps the audit log, newest first, until it is pruned',
    async run(store) {
      const other = audit({ workspaceId: 'other', keyId: null, requestId: null, at: T0 + 2 });
      await write(store, (tx) => tx.audit.append([audit(), audit({ at: T0 + 1, action: 'revokeKey' })]));
      await write(store, (tx) => tx.audit.append([other]));
      await assert.rejects(
        write(store, async (tx) => {
          await tx.audit.append([audit()]);
          throw new Error('undone');
        }),
      );
      const list = (query: object) =>
        read(store, (tx) => tx.audit.list({ workspaceId: null, limit: 9, ...query }));
      const all = await list({});
      assert.deepEqual(
        all.map(({ at }) => at),
        [T0 + 2, T0 + 1, T0],
      );
      const { seq, ...draft } = all[0] as (typeof all)[0];
      assert.deepEqual(draft, other);
      assert.equal((await list({ before: seq, limit: 1 })).length, 1);
      assert.equal((await list({ workspaceId: 'default' })).length, 2);
      assert.equal((await list({ action: 'revokeKey' })).length, 1);
      assert.equal((await list({ keyId: 'key_1', target: 'key_2' })).length, 2);
      assert.equal(await write(store, (tx) => tx.audit.prune(T0 + 1, 9)), 1);
      assert.equal((await list({})).length, 2);
    },
  },
  {
    name: 'renames and deletes orgs and workspaces, whose ids stay taken',
    async run(store) {
      const org = { id: 'o', name: 'Org', createdAt: T0 };
      const workspace = { id: 'w', orgId: 'o', name: 'W', createdAt: T0 };
      await write(store, async (tx) => {
        await tx.tenancy.insertOrg(org);
        await tx.tenancy.insertWorkspace(workspace);
        await tx.tenancy.updateOrg({ ...org, name: 'New', deletedAt: T0 + 1 });
        await tx.tenancy.updateWorkspace({ ...workspace, deletedAt: T0 + 1 });
      });
      await read(store, async ({ tenancy }) => {
        assert.deepEqual(await tenancy.orgs(), [{ ...org, name: 'New', deletedAt: T0 + 1 }]);
        assert.deepEqual(await tenancy.workspace('w'), { ...workspace, deletedAt: T0 + 1 });
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.tenancy.updateOrg({ ...org, id: 'none' })),
      );
    },
  },
];
