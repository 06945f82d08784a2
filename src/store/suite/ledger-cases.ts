import assert from 'node:assert/strict';
import type { TransferDraft } from '../../core/credits/transfer.ts';
import { CHAIN_START, chained, chainHash } from '../../core/credits/transfer.ts';
import { sampleHold, sampleMeter, sampleTransfer, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

function held(id: string, holdId: string, amountMicroUsd: number): TransferDraft {
  const between = { debit: 'liab:credits:default', credit: 'liab:held:default' };
  return sampleTransfer(id, { kind: 'hold', ...between, amountMicroUsd, holdId, sandboxUid: 'a' });
}

function captured(id: string, holdId: string, amountMicroUsd: number): TransferDraft {
  const between = { debit: 'liab:held:default', credit: 'revenue:usage:ext.local' };
  return sampleTransfer(id, { kind: 'capture', ...between, amountMicroUsd, holdId, sandboxUid: 'a' });
}

export const ledgerCases: StoreCase[] = [
  {
    name: 'sums accounts, holds and grants over the rows',
    async run(store) {
      await write(store, async (tx) => {
        await tx.ledger.transfer([sampleTransfer('g1'), sampleTransfer('g2', { amountMicroUsd: 5 })]);
        await tx.ledger.transfer([sampleTransfer('g3', { workspaceId: 'w2', credit: 'liab:credits:w2' })]);
        await tx.ledger.transfer([held('h1:a', 'h1', 300), held('h2:a', 'h2', 50), held('h1:b', 'h1', 7)]);
        await tx.ledger.transfer([captured('h1:c', 'h1', 100)]);
      });
      await read(store, async ({ ledger }) => {
        assert.equal(await ledger.balance('liab:credits:default'), 1_000_005 - 357);
        assert.equal(await ledger.balance('liab:held:default'), 257);
        assert.equal(await ledger.balance('revenue:usage:ext.local'), 100);
        assert.equal(await ledger.balance('asset:external'), -2_000_005);
        assert.equal(await ledger.balance('nobody'), 0);
        assert.deepEqual([...(await ledger.funding('default'))], [['grant', 1_000_005]]);
        assert.equal((await ledger.funding('nobody')).size, 0);
        const balances = await ledger.balances();
        assert.equal(
          balances.reduce((sum, { balance }) => sum + balance, 0),
          0,
        );
        assert.deepEqual(
          balances.map(({ account }) => account),
          [
            'asset:external',
            'liab:credits:default',
            'liab:credits:w2',
            'liab:held:default',
            'revenue:usage:ext.local',
          ],
        );
      });
    },
  },
  {
    name: 'has the same sums however many rows there are, also when a transaction is undone',
    async run(store) {
      await write(store, (tx) =>
        tx.ledger.transfer([sampleTransfer('g', { amountMicroUsd: 1_000_000_000 })]),
      );
      let expected = 1_000_000_000;
      for (let i = 0; i < 450; i += 10) {
        const drafts = Array.from({ length: 10 }, (_, n) => held(`h${i + n}`, `h${i + n}`, i + n + 1));
        const fails = i % 70 === 0;
        const done = write(store, async (tx) => {
          for (const draft of drafts) await tx.ledger.transfer([draft]);
          await tx.ledger.balance('liab:credits:default');
          if (fails) throw new Error('no');
        });
        if (fails) await assert.rejects(done);
        else {
          await done;
          expected -= drafts.reduce((sum, { amountMicroUsd }) => sum + amountMicroUsd, 0);
        }
        assert.equal(await write(store, (tx) => tx.ledger.balance('liab:credits:default')), expected);
        assert.equal(
          await read(store, (tx) => tx.ledger.balance('liab:held:default')),
          1_000_000_000 - expected,
        );
      }
    },
  },
  {
    name: 'writes a transfer once, all of a call or none, and numbers them',
    async run(store) {
      await write(store, (tx) => tx.ledger.transfer([sampleTransfer('a'), sampleTransfer('b')]));
      const refused = [
        [sampleTransfer('a')],
        [sampleTransfer('c'), sampleTransfer('b')],
        [sampleTransfer('d'), sampleTransfer('d')],
      ];
      for (const drafts of refused) {
        await rejectsWith(
          'SBX_CONFLICT',
          write(store, (tx) => tx.ledger.transfer(drafts)),
        );
      }
      for (const amountMicroUsd of [0, -1, 0.5]) {
        const draft = sampleTransfer('e', { amountMicroUsd });
        await rejectsWith(
          'SBX_INTERNAL',
          write(store, (tx) => tx.ledger.transfer([draft])),
        );
      }
      await write(store, (tx) => tx.ledger.transfer([held('f', 'h', 1)]));
      await write(store, (tx) => tx.ledger.transfer([sampleTransfer('g', { workspaceId: 'w2' })]));
      const rows = await read(store, (tx) => tx.ledger.transfers({ workspaceId: null, after: 0, limit: 9 }));
      const expected = chained(held('f', 'h', 1), 3, rows[1]?.hash ?? '');
      assert.deepEqual(await read(store, (tx) => tx.ledger.getTransfer('f')), expected);
      rows.forEach((row, i) => {
        assert.equal(row.hash, chainHash(rows[i - 1]?.hash ?? CHAIN_START, row));
      });
      assert.equal(await read(store, (tx) => tx.ledger.getTransfer('c')), null);
      const ids = (workspaceId: string | null, after: number, limit: number) =>
        read(store, async (tx) =>
          (await tx.ledger.transfers({ workspaceId, after, limit })).map(({ id }) => id),
        );
      assert.deepEqual(await ids(null, 0, 9), ['a', 'b', 'f', 'g']);
      assert.deepEqual(await ids('default', 1, 9), ['b', 'f']);
      assert.deepEqual(await ids('default', 0, 2), ['a', 'b']);
      assert.deepEqual(await ids('w2', 0, 9), ['g']);
      const newest = (before: number, limit: number) =>
        read(store, async (tx) =>
          (await tx.ledger.transfers({ workspaceId: 'default', after: 0, before, limit })).map(
            ({ id }) => id,
          ),
        );
      assert.deepEqual(await newest(9, 2), ['f', 'b']);
      assert.deepEqual(await newest(2, 2), ['a']);
    },
  },
  {
    name: 'keeps holds',
    async run(store) {
      const settled = sampleHold('h', { state: 'settled', resolvedAt: T0 + 1 });
      await write(store, (tx) => tx.ledger.insertHold(sampleHold('h')));
      assert.deepEqual(await read(store, (tx) => tx.ledger.getHold('h')), sampleHold('h'));
      await write(store, (tx) => tx.ledger.updateHold(settled));
      assert.deepEqual(await read(store, (tx) => tx.ledger.getHold('h')), settled);
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.ledger.insertHold(settled)),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.ledger.updateHold(sampleHold('none'))),
      );
      assert.equal(await read(store, (tx) => tx.ledger.getHold('none')), null);
    },
  },
  {
    name: 'keeps meters exactly, and finds those that run',
    async run(store) {
      const exact = sampleMeter('exact', {
        generation: 2,
        accrued: 10n ** 40n + 1n,
        pausedRate: 7n,
        closedAt: T0 + 5,
        billedMs: 12,
        chargedMicroUsd: 3,
      });
      await write(store, async (tx) => {
        await tx.meters.insert(exact);
        await tx.meters.insert(sampleMeter('late', { since: T0 + 2 }));
        await tx.meters.insert(sampleMeter('early', { since: T0 + 1, openedAt: T0 + 1 }));
        await tx.meters.insert(sampleMeter('free', { rate: 0n }));
        await tx.meters.insert(sampleMeter('other', { sandboxUid: 'b', since: T0 + 3 }));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.meters.insert(exact)),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.meters.update(sampleMeter('none'))),
      );
      assert.deepEqual(await read(store, (tx) => tx.meters.get('exact')), exact);
      const running = (before: number, limit = 9) =>
        read(store, async (tx) => (await tx.meters.openSince(before, limit)).map(({ id }) => id));
      assert.deepEqual(await running(T0 + 3), ['early', 'late']);
      assert.deepEqual(await running(T0 + 4, 1), ['early']);
      await write(store, (tx) => tx.meters.update(sampleMeter('early', { closedAt: T0 + 9 })));
      await write(store, (tx) => tx.meters.update(sampleMeter('free', { rate: 1n })));
      assert.deepEqual(await running(T0 + 4), ['free', 'late', 'other']);
      const ofSandbox = await read(store, (tx) => tx.meters.forSandbox('sbx_0001'));
      assert.deepEqual(
        ofSandbox.map(({ id }) => id),
        ['early', 'free', 'late', 'exact'],
      );
    },
  },
];
