import { describe, expect, it } from 'vitest';
import { auditLedger } from '../../src/control/money/audit-ledger.ts';
import type { ControlPorts } from '../../src/control/ports/control-ports.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import type { MeterRecord } from '../../src/core/credits/meter.ts';
import type { Store } from '../../src/core/ports/store/store.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import {
  sampleEvent,
  sampleMeter,
  sampleSandbox,
  sampleTransfer,
} from '../../src/store/suite/sample-records.ts';

const NOW = 2_000_000_000_000;
const BEGAN = NOW - 600_000;
const caller = { actor: 'adm', scopes: new Set(['server']) } as unknown as Caller;

async function findingsIn(store: Store) {
  const deps = { store, clock: { now: () => NOW }, settings: DEFAULT_SETTINGS } as unknown as ControlPorts;
  return (await auditLedger(deps, caller)).findings;
}

/** A life of two minutes that ran, one of pause and two that ran, then its end. */
async function storeWith(
  meter: Partial<MeterRecord>,
  endReason: Record<string, unknown> = {},
): Promise<Store> {
  const store = new MemoryStore(memoryDatabase());
  const deadlineAt = BEGAN + 3_600_000;
  const moves = [
    ['ready', 0, {}],
    ['paused', 120_000, endReason],
    ['active', 180_000, {}],
    ['expired', 300_000, {}],
  ] as const;
  await store.transaction('life', async (tx) => {
    await tx.sandboxes.insert(sampleSandbox({ uid: 'sbx_1', state: 'expired', deadlineAt }));
    const rates = { runningRate: 1_000_000n, pausedRate: 0n, rate: 0n };
    const closed = { openedAt: BEGAN, since: BEGAN + 300_000, closedAt: BEGAN + 300_000 };
    await tx.meters.insert(sampleMeter('m', { sandboxUid: 'sbx_1', ...rates, ...closed, ...meter }));
    await tx.ledger.transfer([sampleTransfer('g', { sandboxUid: 'sbx_1' })]);
    for (const [index, [state, after, details]] of moves.entries())
      await tx.events.append([
        sampleEvent('sbx_1', {
          id: `evt-${index}`,
          type: `sandbox.${state}`,
          state,
          at: BEGAN + after,
          subjectSeq: index + 1,
          generation: 1,
          details,
        }),
      ]);
  });
  return store;
}

describe('the audit of billed time', () => {
  it.each([
    ['as much as it ran', { billedMs: 240_000 }, []],
    ['its pause, too', { billedMs: 300_000 }, ['I13']],
    ['a second and a half of its pause', { billedMs: 241_500 }, ['I13']],
    ['nothing at all', { billedMs: 0 }, ['I13']],
    ['twenty seconds less', { billedMs: 220_000 }, ['I13']],
    ['the time that its backend confirmed', { billedMs: 220_000, fundedUntil: BEGAN + 280_000 }, []],
  ] as const)(
    'the audit of billed time finds the fault where a meter billed %s',
    async (_what, meter, expected) => {
      const findings = await findingsIn(await storeWith(meter));
      expect(findings.map(({ invariant }) => invariant)).toEqual(expected);
    },
  );

  it('the audit of billed time does not ask for the time before a stop that its backend chose', async () => {
    const reason = { reason: 'its backend stopped it and kept its disk' };
    expect(await findingsIn(await storeWith({ billedMs: 120_000 }, reason))).toEqual([]);
  });
});
