import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { auditLedger } from '../../src/control/money/audit-ledger.ts';
import { grantCredits } from '../../src/control/money/credits.ts';
import { createSandbox } from '../../src/control/sandboxes/create-sandbox.ts';
import { destroySandbox } from '../../src/control/sandboxes/destroy-sandbox.ts';
import { extendSandbox } from '../../src/control/sandboxes/extend-sandbox.ts';
import { pauseSandbox, resumeSandbox } from '../../src/control/sandboxes/pause-sandbox.ts';
import type { MeterRecord } from '../../src/core/credits/meter.ts';
import type { SandboxRecord } from '../../src/core/lifecycle/sandbox.ts';
import { TIMELINE_CALLER as caller, MoneyTimeline } from '../support/money-timeline.ts';

type Step =
  | { readonly kind: 'pause' | 'resume' | 'funding' }
  | { readonly kind: 'extend'; readonly ttl: number }
  | { readonly kind: 'kill'; readonly downMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>({ kind: 'pause' }, { kind: 'resume' }, { kind: 'funding' }),
  fc.record({ kind: fc.constant('extend' as const), ttl: fc.integer({ min: 1, max: 90 }) }),
  fc.record({ kind: fc.constant('kill' as const), downMs: fc.integer({ min: 5, max: 60_000 }) }),
);
const line = fc.record({
  seed: fc.integer({ min: 1, max: 1_000 }),
  backend: fc.constantFrom('' as const, '#b' as const, '#c' as const),
  ttl: fc.integer({ min: 2, max: 60 }),
  /** Before `ready`, which takes eight tenths of a second. */
  early: fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 90 })), {
    maxLength: 2,
  }),
  steps: fc.array(fc.tuple(step, fc.integer({ min: 0, max: 12_000 })), { maxLength: 8 }),
  isDestroyed: fc.boolean(),
});
type Line = typeof line extends fc.Arbitrary<infer T> ? T : never;

async function begin({ seed, backend, ttl, early }: Pick<Line, 'seed' | 'backend' | 'ttl' | 'early'>) {
  const timeline = new MoneyTimeline(seed, backend);
  await timeline.start();
  await timeline.ask((control) =>
    grantCredits(control, caller, { amount_micro_usd: 1_000_000_000, kind: 'grant' }),
  );
  const request = {
    profile: 'profile.stub-plain',
    ttl,
    inputs: {},
    consumer: {},
    labels: {},
    elevated: false,
  };
  const { sandbox } = await timeline.ask((control) =>
    createSandbox(control, caller, { request, wait: false }),
  );
  for (const [gapMs, longer] of early) {
    await timeline.pass(gapMs);
    await timeline
      .ask((control) => extendSandbox(control, caller, { id: sandbox.id, ttlSeconds: longer }))
      .catch(() => {});
  }
  await timeline.pass(1_500);
  return { timeline, sandbox };
}

/** A refusal is an answer: what matters is what is billed. */
async function take(timeline: MoneyTimeline, { id }: SandboxRecord, one: Step): Promise<void> {
  if (one.kind === 'kill') {
    timeline.kill();
    await timeline.pass(one.downMs);
    await timeline.start();
    return;
  }
  if (one.kind === 'funding') return timeline.pass(15_000);
  await timeline
    .ask<unknown>((control) => {
      if (one.kind === 'pause') return pauseSandbox(control, caller, { id });
      if (one.kind === 'resume') return resumeSandbox(control, caller, { id });
      return extendSandbox(control, caller, { id, ttlSeconds: one.kind === 'extend' ? one.ttl : 1 });
    })
    .catch(() => {});
}

async function end(timeline: MoneyTimeline, sandbox: SandboxRecord, isDestroyed: boolean): Promise<void> {
  if (isDestroyed)
    await timeline
      .ask((control) => destroySandbox(control, caller, { id: sandbox.id, wait: true }))
      .catch(() => {});
  for (let waited = 0; timeline.mirror.unfinished.size > 0; waited += 1) {
    if (waited > 60) throw new Error('It does not come to an end.');
    await timeline.pass(5_000);
  }
}

/** By the events alone: the stretches in states that are billed, and the deadline that was in force at the end of each. */
function stretchesOf({ mirror }: MoneyTimeline, meter: MeterRecord) {
  const stretches: { from: number; to: number; deadlineAt: number }[] = [];
  const events = [...mirror.events.values()].filter(({ sandboxUid }) => sandboxUid === meter.sandboxUid);
  let deadlineAt = Number.POSITIVE_INFINITY;
  let from: number | null = null;
  for (const { type, state, at, details } of events) {
    const isBilled = state === 'ready' || state === 'active' || (state === 'paused' && meter.pausedRate > 0n);
    if (from !== null && !isBilled) {
      stretches.push({ from, to: at, deadlineAt });
      from = null;
    } else if (isBilled && type.startsWith('sandbox.')) from ??= at;
    if (type === 'sandbox.extended') deadlineAt = Date.parse(details.expires_at as string);
  }
  return stretches;
}

function expectExactMoney(timeline: MoneyTimeline, meter: MeterRecord): void {
  const { runningRate, minimumSeconds, createFeeMicroUsd, billedMs } = meter;
  const time = BigInt(Math.max(billedMs, minimumSeconds * 1_000));
  const price = createFeeMicroUsd + Number((runningRate * time) / 1_000_000_000n);
  expect(meter.chargedMicroUsd).toBe(price);
  expect(timeline.mirror.captured.get(meter.holdId) ?? 0).toBe(price);
  expect(timeline.mirror.transfers.get(`${meter.id}:cost`)?.amountMicroUsd ?? 0).toBe(price);
}

describe('money over time-lines', () => {
  it('billed time is the time in billable states by the events, to the micro-dollar', async () => {
    const told = { lines: 0, exact: 0, early: 0 };
    await fc.assert(
      fc.asyncProperty(line, async (given) => {
        const { timeline, sandbox } = await begin(given);
        try {
          for (const [one, gapMs] of given.steps) {
            await take(timeline, sandbox, one);
            await timeline.pass(gapMs);
          }
          await end(timeline, sandbox, given.isDestroyed);
          expect(timeline.violation).toBeNull();
          const { findings } = await timeline.ask((control) => auditLedger(control, caller));
          expect(findings).toEqual([]);
          const [meter] = timeline.mirror.meterRows(sandbox.uid);
          if (meter === undefined) return;
          told.lines += 1;
          const firstDeadline = sandbox.createdAt + given.ttl * 1_000;
          const stretches = stretchesOf(timeline, meter).map(({ from, to, deadlineAt }) => ({
            ran: to - from,
            owed: Math.max(0, Math.min(to, Number.isFinite(deadlineAt) ? deadlineAt : firstDeadline) - from),
          }));
          const ran = stretches.reduce((sum, one) => sum + one.ran, 0);
          const owed = stretches.reduce((sum, one) => sum + one.owed, 0);
          expect(meter.billedMs).toBeLessThanOrEqual(ran);
          // Only while nobody is up does a backend end what nobody confirmed in time.
          if (!given.steps.some(([{ kind }]) => kind === 'kill')) {
            expect(meter.billedMs).toBe(owed);
            told.exact += 1;
          }
          if (given.early.length > 0) told.early += 1;
          expectExactMoney(timeline, meter);
        } finally {
          await timeline.dispose();
        }
      }),
      { numRuns: 120 },
    );
    expect(told.lines).toBeGreaterThan(60);
    expect(Math.min(told.exact, told.early)).toBeGreaterThan(10);
  });

  it('a deadline that was moved before ready is confirmed by the backend at once', async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const { timeline, sandbox } = await begin({ seed, backend: '', ttl: 4, early: [[0, 60]] });
      try {
        const [meter] = timeline.mirror.meterRows(sandbox.uid);
        expect(meter?.fundAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(timeline.now);
        expect(meter?.fundedUntil).toBeGreaterThan((meter?.openedAt ?? 0) + 12_000);
      } finally {
        await timeline.dispose();
      }
    }
  });

  it('extend and resume are refused after the deadline, also where no sweep came by yet', async () => {
    const { timeline, sandbox } = await begin({ seed: 7, backend: '', ttl: 10, early: [] });
    try {
      await timeline.ask((control) => pauseSandbox(control, caller, { id: sandbox.id }));
      timeline.kill();
      await timeline.pass(sandbox.deadlineAt - timeline.now + 1);
      const process = timeline.spawn();
      const late = [
        timeline.ask((control) => resumeSandbox(control, caller, { id: sandbox.id })),
        timeline.ask((control) => extendSandbox(control, caller, { id: sandbox.id, ttlSeconds: 60 })),
      ];
      for (const answer of await Promise.allSettled(late))
        expect(answer).toMatchObject({
          status: 'rejected',
          reason: { code: 'SBX_INVALID_STATE', message: expect.stringContaining('passed at') },
        });
      await timeline.start(process);
      await end(timeline, sandbox, false);
      expect(timeline.violation).toBeNull();
    } finally {
      await timeline.dispose();
    }
  });
});
