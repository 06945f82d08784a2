import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { SandboxerError } from '../../src/contract/errors/errors.ts';
import { accounts } from '../../src/core/credits/accounts.ts';
import { billableTime } from '../../src/core/credits/billable-time.ts';
import { ledger } from '../../src/core/credits/ledger/ledger.ts';
import type { MeterRecord } from '../../src/core/credits/meter.ts';
import {
  cumulativeMicroUsd,
  evidenceOf,
  observed,
  observedSeconds,
  rebase,
} from '../../src/core/credits/meter.ts';
import { defaultPolicy } from '../../src/core/credits/policy.ts';
import type { Store } from '../../src/core/ports/store/store.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sampleMeter, sampleTransfer } from '../../src/store/suite/sample-records.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-money-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const PRICE = 1_000;
const SPENDER = {
  keyId: null,
  keyLines: [],
  budgetLine: null,
  profileId: 'profile.x',
  actor: 'agt',
  runId: null,
} as const;

async function admit(store: Store, n: number, policy = defaultPolicy('default')): Promise<string> {
  try {
    await store.transaction('create', (tx) =>
      ledger.hold(tx, {
        holdId: `hold-${n}`,
        workspaceId: 'default',
        sandboxUid: `sbx-${n}`,
        generation: 1,
        amountMicroUsd: PRICE,
        ownKeyMicroUsd: 0,
        at: 1,
        lives: { seconds: 1, reserve: () => ({ amountMicroUsd: PRICE, ownKeyMicroUsd: 0 }) },
        cheapest: null,
        policy,
        spender: SPENDER,
      }),
    );
    return 'admitted';
  } catch (error) {
    return (error as SandboxerError).code;
  }
}

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', async () => new MemoryStore(memoryDatabase())],
  ['SQLite', () => SqliteStore.open({ path: join(root, 'state', 'sandboxer.db') })],
];

describe.each(stores)('a hundred creates at once (%s)', (_name, open) => {
  it('admit as many as there is money for, and as a budget allows', async () => {
    const store = await open();
    try {
      await store.transaction('grant', (tx) =>
        tx.ledger.transfer([sampleTransfer('g', { amountMicroUsd: 7 * PRICE + PRICE / 2 })]),
      );
      const all = await Promise.all(Array.from({ length: 100 }, (_, n) => admit(store, n)));
      expect(all.filter((outcome) => outcome === 'admitted')).toHaveLength(7);
      expect(all.filter((outcome) => outcome === 'SBX_INSUFFICIENT_CREDITS')).toHaveLength(93);
      const purse = accounts.credits('default');
      const [available, held] = await store.read('balance', async ({ ledger: rows }) => [
        await rows.balance(purse),
        await rows.balance(accounts.held(purse)),
      ]);
      expect([available, held]).toEqual([PRICE / 2, 7 * PRICE]);

      await store.transaction('grant', (tx) =>
        tx.ledger.transfer([sampleTransfer('h', { amountMicroUsd: 1000 * PRICE })]),
      );
      const budget = {
        id: 'b1',
        scope: 'profile',
        value: null,
        period: 'lifetime',
        limitMicroUsd: 3 * PRICE,
        throttleSeconds: null,
        createdAt: 0,
      } as const;
      const policy = { ...defaultPolicy('default'), budgets: [budget] };
      const more = await Promise.all(Array.from({ length: 50 }, (_, n) => admit(store, 1000 + n, policy)));
      expect(more.filter((outcome) => outcome === 'admitted')).toHaveLength(3);
      expect(more.filter((outcome) => outcome === 'SBX_BUDGET_EXCEEDED')).toHaveLength(47);
    } finally {
      await store.close();
    }
  });
});

const rate = fc.bigInt({ min: 1n, max: 10n ** 13n });
const life = fc.integer({ min: 1, max: 86_400_000 });

function fresh(runningRate: bigint, over: Partial<MeterRecord> = {}): MeterRecord {
  return sampleMeter('m', { runningRate, rate: runningRate, since: 0, openedAt: 0, ...over });
}

/** Ticks as they arrive: each captures what is due by its own clock, as `captureUsed` does. */
function chargeWith(meter: MeterRecord, ticks: readonly number[], end: number): number {
  let current = meter;
  let charged = 0;
  for (const at of [...ticks, end]) {
    const due = cumulativeMicroUsd(current, at) - charged;
    if (due > 0) charged += due;
    current = rebase(current, at, current.rate);
  }
  return charged;
}

describe('charges', () => {
  const ticks = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });
  const terms = fc.record({
    createFeeMicroUsd: fc.nat(10_000),
    minimumSeconds: fc.nat(120),
    quantumMs: fc.constantFrom(1, 100, 1_000, 60_000),
  });

  it('charges are the same however time is sliced, and whatever is repeated or late', () => {
    fc.assert(
      fc.property(rate, life, ticks, terms, fc.boolean(), (perSecond, end, shares, over, sorted) => {
        const meter = fresh(perSecond, over);
        const at = shares.map((share) => Math.floor(share * end));
        const order = sorted ? [...at].sort((a, b) => a - b) : at;
        const twice = order.flatMap((tick) => [tick, tick]);
        expect(chargeWith(meter, twice, end)).toBe(chargeWith(meter, [], end));
      }),
      { numRuns: 500 },
    );
  });

  it('a figure of mid-life is evidence for the time before it alone', () => {
    fc.assert(
      fc.property(life, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(5_000), (end, share, ahead) => {
        const askedAt = Math.floor(end * share);
        // A tick may come between the question and its answer, and the backend bills what was before ready, too.
        const ticked = rebase(fresh(1_000n), Math.min(end, askedAt + 700), 1_000n);
        const closed = rebase(observed(ticked, askedAt + ahead, askedAt), end, 0n);
        expect(observedSeconds(closed, closed.billedMs)).toBe(askedAt / 1000);
        const evidence = askedAt === end ? 'provider_observed' : 'own_clock';
        expect(evidenceOf(closed, closed.billedMs)).toBe(evidence);
      }),
    );
  });

  it('charges never hold paused time, wherever the end of what is owed lies and however late it moves', () => {
    const stretch = fc.record({
      runMs: fc.nat(60_000),
      pauseMs: fc.nat(60_000),
      /** How much of the stretch its backend has confirmed when the pause begins, and whether the rest follows. */
      confirmed: fc.double({ min: 0, max: 1.5, noNaN: true }),
      isLate: fc.boolean(),
    });
    fc.assert(
      fc.property(rate, fc.array(stretch, { minLength: 1, maxLength: 8 }), (perSecond, stretches) => {
        let meter = fresh(perSecond);
        let now = 0;
        let owed = 0;
        for (const { runMs, pauseMs, confirmed, isLate } of stretches) {
          const bound = now + Math.floor(runMs * confirmed);
          owed += Math.min(runMs, bound - now);
          now += runMs;
          meter = rebase(meter, now, 0n, bound);
          // A tick while it is paused, with the same end or with one that was confirmed meanwhile.
          meter = rebase(meter, Math.min(now + pauseMs, isLate ? now + pauseMs : bound), 0n);
          now += pauseMs;
          meter = rebase(meter, now, perSecond, now);
        }
        expect(meter.billedMs).toBe(owed);
        expect(meter.accrued).toBe(perSecond * BigInt(owed));
      }),
      { numRuns: 500 },
    );
  });

  it('charges are never raised by a clock that is up to five minutes wrong, either way', () => {
    const skew = fc.array(fc.integer({ min: -300_000, max: 300_000 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(rate, life, ticks, skew, (perSecond, end, shares, skews) => {
        let passed = 0;
        let wrongBy = 0;
        const billable = billableTime(
          () => passed + wrongBy,
          () => passed,
        );
        const meter = fresh(perSecond, { since: billable() });
        const seen = shares
          .map((share) => Math.floor(share * end))
          .sort((a, b) => a - b)
          .map((tick, i) => {
            passed = tick;
            wrongBy = skews[i % skews.length] as number;
            return billable();
          });
        passed = end;
        expect(chargeWith(meter, seen, billable())).toBeLessThanOrEqual(
          chargeWith(fresh(perSecond), [], end),
        );
      }),
      { numRuns: 500 },
    );
  });
});
