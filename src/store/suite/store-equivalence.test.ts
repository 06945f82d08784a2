import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { SandboxState } from '../../contract/values/state.ts';
import { defaultPolicy } from '../../core/credits/policy.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SandboxQuery } from '../../core/ports/store/sandbox-store.ts';
import type { Store, Tx } from '../../core/ports/store/store.ts';
import { memoryDatabase } from '../memory/memory-database.ts';
import { MemoryStore } from '../memory/memory-store.ts';
import { SqliteStore } from '../sqlite/sqlite-store.ts';
import {
  sampleAttempt,
  sampleDocuments,
  sampleEvent,
  sampleGrant,
  sampleHold,
  sampleMeter,
  sampleSandbox,
  sampleSnapshot,
  sampleTransfer,
  T0,
} from './sample-records.ts';

const root = mkdtempSync(join(tmpdir(), 'sandboxer-equivalence-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A call on the store. Its answer, or the code that it rejects with, is the same in every store. */
type Step = (tx: Tx) => Promise<unknown>;

const oneOf = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const uid = oneOf('a', 'b', 'c', 'd');
const workspaceId = oneOf('w1', 'w2');
const anyWorkspace = oneOf('w1', 'w2', null);
const time = fc.integer({ min: T0, max: T0 + 8 });
const limit = fc.integer({ min: 1, max: 5 });
const state = oneOf(...SandboxState.options);
const labels = fc.record({ l: oneOf('1', '2'), m: oneOf('1', '2') }, { requiredKeys: [] });
const consumer = fc.record(
  { harness: oneOf('h', 'i'), session_id: oneOf('x', 'y'), run_id: oneOf('x', 'y'), job_id: oneOf('x') },
  { requiredKeys: [] },
);
const lease = fc.option(fc.record({ owner: oneOf('me', 'them'), token: oneOf('t'), until: time }));

const mutable = fc.record({
  state,
  stateSince: time,
  reuseKey: oneOf('k1', 'k2', null),
  labels,
  deadlineAt: time,
  idleDeadlineAt: fc.option(time),
  extensionId: oneOf('ext.one', 'ext.two', null),
  lease,
  workDueAt: fc.option(time),
});

const query: fc.Arbitrary<SandboxQuery> = fc
  .record(
    {
      workspaceId: anyWorkspace,
      limit,
      states: fc.uniqueArray(state, { maxLength: 3 }),
      extensionId: oneOf('ext.one', 'ext.two'),
      labels,
      harness: oneOf('h', 'i'),
      externalId: oneOf('x', 'y'),
    },
    { requiredKeys: ['workspaceId', 'limit'] },
  )
  .map((value) => value as SandboxQuery);

async function pages(tx: Tx, first: SandboxQuery): Promise<unknown> {
  const seen: unknown[] = [];
  let cursor: string | null = null;
  do {
    const page: { items: readonly SandboxRecord[]; nextCursor: string | null } = await tx.sandboxes.list({
      ...first,
      cursor,
    });
    seen.push(page);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return seen;
}

const sandboxStep: fc.Arbitrary<Step> = fc.oneof(
  fc
    .record({ uid, workspaceId, id: oneOf('x', 'y', 'a', 'b'), createdAt: time, consumer, over: mutable })
    .map(
      ({ over, ...row }): Step =>
        (tx) =>
          tx.sandboxes.insert(sampleSandbox({ ...row, ...over })),
    ),
  fc.record({ uid, over: mutable, stale: fc.boolean() }).map(
    ({ uid, over, stale }): Step =>
      async (tx) => {
        const row = await tx.sandboxes.get(uid);
        return row && tx.sandboxes.update({ ...row, ...over, version: row.version - (stale ? 1 : 0) });
      },
  ),
  fc.tuple(anyWorkspace, oneOf('x', 'y', 'a', 'b', 'c')).map(
    ([workspace, id]): Step =>
      (tx) =>
        tx.sandboxes.find(workspace, id),
  ),
  fc.tuple(workspaceId, oneOf('k1', 'k2')).map(
    ([w, key]): Step =>
      (tx) =>
        tx.sandboxes.findReusable(w, key),
  ),
  query.map(
    (value): Step =>
      (tx) =>
        pages(tx, value),
  ),
  workspaceId.map(
    (id): Step =>
      (tx) =>
        tx.sandboxes.countLiving(id),
  ),
  fc.tuple(time, limit).map(
    ([now, max]): Step =>
      async ({ sandboxes }) => [
        await sandboxes.dueWork(now, max),
        await sandboxes.dueDeadlines(now, max),
        await sandboxes.dueIdle(now, max),
        await sandboxes.nextDueAt(),
      ],
  ),
  fc.tuple(oneOf('ext.one', 'ext.two'), fc.option(uid), limit).map(
    ([ext, after, max]): Step =>
      (tx) =>
        tx.sandboxes.establishedOn(ext, after, max),
  ),
  fc.tuple(oneOf('me', 'them'), time).map(
    ([owner, now]): Step =>
      (tx) =>
        tx.sandboxes.releaseForeignLeases(owner, now),
  ),
  fc.tuple(time, fc.integer({ min: 0, max: 30 }), limit).map(
    ([before, seq, max]): Step =>
      (tx) =>
        tx.sandboxes.prune(before, seq, max),
  ),
);

const otherStep: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(uid, fc.integer({ min: 1, max: 2 })).map(
    ([u, g]): Step =>
      (tx) =>
        tx.sandboxes.insertDocuments(sampleDocuments(u, g)),
  ),
  fc.tuple(uid, fc.integer({ min: 1, max: 2 })).map(
    ([u, g]): Step =>
      (tx) =>
        tx.sandboxes.documents(u, g),
  ),
  fc.tuple(uid, fc.integer({ min: 1, max: 3 })).map(
    ([u, n]): Step =>
      (tx) =>
        tx.attempts.insert(sampleAttempt(u, { n })),
  ),
  uid.map(
    (u): Step =>
      (tx) =>
        tx.attempts.forSandbox(u),
  ),
  fc.array(fc.record({ uid: fc.option(uid), at: time, workspaceId }), { maxLength: 3 }).map(
    (events): Step =>
      (tx) =>
        tx.events.append(events.map(({ uid, ...over }) => sampleEvent(uid, over))),
  ),
  fc
    .record(
      { workspaceId: anyWorkspace, sandboxUid: uid, after: fc.nat(9), limit },
      { requiredKeys: ['workspaceId', 'after', 'limit'] },
    )
    .map(
      (value): Step =>
        (tx) =>
          tx.events.list(value),
    ),
  fc.tuple(time, fc.nat(30), limit).map(
    ([before, seq, max]): Step =>
      (tx) =>
        tx.events.prune(before, seq, max),
  ),
  fc.nat(9).map(
    (seq): Step =>
      (tx) =>
        tx.outbox.park({ sinkId: 's', seq, subject: 'a', tries: 1, nextAt: T0, lastError: '', dead: false }),
  ),
  fc.nat(9).map(
    (seq): Step =>
      (tx) =>
        tx.outbox.unpark('s', seq),
  ),
  fc.tuple(oneOf('s1', 's2', 's3'), state, time).map(
    ([id, , createdAt]): Step =>
      (tx) =>
        tx.snapshots.insert(sampleSnapshot(id, { createdAt, workspaceId: 'w1' })),
  ),
  fc
    .record({
      id: oneOf('s1', 's2', 's3'),
      state: oneOf('available', 'deleting', 'deleted' as const),
      expiresAt: fc.option(time),
    })
    .map(
      ({ id, ...over }): Step =>
        async (tx) => {
          const row = await tx.snapshots.get(id);
          return row && tx.snapshots.update({ ...row, ...over } as typeof row);
        },
    ),
  fc.tuple(time, limit).map(
    ([now, max]): Step =>
      async ({ snapshots }) => [
        await snapshots.dueDeletion(now, max),
        await snapshots.list({ workspaceId: null, limit: max }),
        await snapshots.prune(now, 1),
      ],
  ),
  fc.tuple(oneOf('m1', 'm2'), oneOf(0n, 5n), time).map(
    ([id, rate, since]): Step =>
      async ({ meters }) => {
        const record = sampleMeter(id, { rate, since, fundAt: rate === 0n ? null : since + 1 });
        return (await meters.get(id)) ? meters.update(record) : meters.insert(record);
      },
  ),
  fc.tuple(time, limit).map(
    ([before, max]): Step =>
      (tx) =>
        tx.meters.openSince(before, max),
  ),
  fc
    .array(
      fc.record({
        id: oneOf('t1', 't2', 't3', 't4', 't5'),
        debit: oneOf('liab:credits:w1', 'liab:held:w1'),
        credit: oneOf('liab:credits:w1', 'liab:held:w1', 'revenue:usage:x'),
        amountMicroUsd: fc.integer({ min: 0, max: 9 }),
        holdId: oneOf('h1', null),
      }),
      { maxLength: 2 },
    )
    .map(
      (drafts): Step =>
        (tx) =>
          tx.ledger.transfer(drafts.map(({ id, ...over }) => sampleTransfer(id, over))),
    ),
  fc.constant<Step>(async ({ ledger }) => [
    await ledger.balance('liab:credits:w1'),
    await ledger.balance('liab:held:w1'),
    await ledger.balances(),
    [...(await ledger.funding('default'))],
    await ledger.transfers({ workspaceId: null, after: 1, limit: 3 }),
  ]),
  oneOf('h1', 'h2').map(
    (id): Step =>
      (tx) =>
        tx.ledger.insertHold(sampleHold(id)),
  ),
  fc.tuple(oneOf('h1', 'h2'), oneOf('open', 'settled' as const)).map(
    ([id, held]): Step =>
      async ({ ledger }) => {
        const share = { budgetId: 'b', mark: 'b:lifetime:all', heldMicroUsd: 3 };
        const hold = sampleHold(id, { state: held as 'open', heldMicroUsd: 3, budgets: [share] });
        return [await codeOrAnswer(ledger.updateHold(hold)), await ledger.openHolds('h0', 2)];
      },
  ),
  fc.tuple(oneOf('g1', 'g2'), fc.option(time), fc.option(time)).map(
    ([id, expiresAt, endedAt]): Step =>
      async ({ ledger }) => {
        const grant = sampleGrant(id, { expiresAt, endedAt });
        await codeOrAnswer(ledger.insertGrant(grant));
        await ledger.updateGrant(grant);
        return [await ledger.liveGrants('liab:credits:default'), await ledger.dueGrants(T0 + 4, 1)];
      },
  ),
  fc.tuple(workspaceId, fc.option(fc.nat(3))).map(
    ([w, maxLiving]): Step =>
      async ({ ledger }) => {
        await ledger.setPolicy({ ...defaultPolicy(w), maxLiving });
        await ledger.setBudgetState({ mark: w, told: maxLiving ?? 0, admittedAt: T0 });
        return [await ledger.policy('w1'), await ledger.budgetState('w2')];
      },
  ),
  fc.tuple(time, limit).map(
    ([from, max]): Step =>
      async ({ ledger, meters, sandboxes }) => [
        await ledger.transfers({
          workspaceId: 'default',
          kinds: ['grant'],
          from,
          to: from + 3,
          after: 0,
          limit: max,
        }),
        await meters.dueFunding(from, max),
        await meters.nextFundingAt(),
        await meters.open('m1', max),
        await sandboxes.countCreated('w1', from),
      ],
  ),
);

interface Transaction {
  readonly steps: readonly Step[];
  readonly fails: boolean;
}

const transaction: fc.Arbitrary<Transaction> = fc.record({
  steps: fc.array(fc.oneof({ weight: 2, arbitrary: sandboxStep }, otherStep), { minLength: 1, maxLength: 8 }),
  fails: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});

async function answers(store: Store, groups: readonly (readonly Transaction[])[]): Promise<unknown[]> {
  const told: unknown[] = [];
  store.onCommit(({ sandboxUids, lastSeq }) => told.push(['told', [...sandboxUids].sort(), lastSeq]));
  for (const group of groups) {
    const results = group.map(({ steps, fails }) =>
      store.transaction('t', async (tx) => {
        const seen: unknown[] = [];
        for (const step of steps) seen.push(await codeOrAnswer(step(tx)));
        told.push(seen);
        if (fails) throw new Error('undone');
        return seen;
      }),
    );
    await Promise.allSettled(results);
  }
  return told;
}

async function codeOrAnswer(promise: Promise<unknown>): Promise<unknown> {
  try {
    return (await promise) ?? null;
  } catch (error) {
    if (error instanceof SandboxerError) return error.code;
    throw error;
  }
}

const RUNS = Number(process.env.SANDBOXER_PROPERTY_RUNS ?? 40);

describe('every store', () => {
  it(
    'every store gives the same answers to the same calls',
    async () => {
      let count = 0;
      const groups = fc.array(fc.array(transaction, { minLength: 1, maxLength: 3 }), { maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(groups, async (calls) => {
          const memory = new MemoryStore(memoryDatabase());
          const sqlite = await SqliteStore.open({ path: join(root, `${count++}.db`) });
          try {
            const [fromMemory, fromSqlite] = [await answers(memory, calls), await answers(sqlite, calls)];
            const isAnswer = (entry: unknown) => (entry as unknown[])[0] !== 'told';
            expect(fromSqlite.filter(isAnswer)).toEqual(fromMemory.filter(isAnswer));
            expect(fromSqlite.filter((entry) => !isAnswer(entry))).toEqual(
              fromMemory.filter((entry) => !isAnswer(entry)),
            );
          } finally {
            await sqlite.close();
          }
        }),
        { numRuns: RUNS },
      );
    },
    30_000 + RUNS * 1_000,
  );
});
