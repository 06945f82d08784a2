import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MeterRecord } from './meter.ts';
import { costMicroUsd, cumulativeMicroUsd, rebase } from './meter.ts';

function meterAt(rate: bigint, changes: Partial<MeterRecord> = {}): MeterRecord {
  return {
    id: 'meter',
    sandboxUid: 'sbx',
    workspaceId: 'ws',
    generation: 1,
    extensionId: 'ext.x',
    holdId: 'hold',
    priceVersion: 'p',
    openedAt: 0,
    closedAt: null,
    runningRate: rate,
    pausedRate: 0n,
    rate,
    since: 0,
    accrued: 0n,
    billedMs: 0,
    createFeeMicroUsd: 0,
    minimumSeconds: 0,
    chargedMicroUsd: 0,
    estimateMicroUsd: 0,
    quantumMs: 1,
    fundedUntil: null,
    fundAt: null,
    lowSince: null,
    sandboxId: 'sbx',
    profileId: 'profile.x',
    actor: 'agt',
    keyId: null,
    runId: null,
    evidence: 'own_clock',
    backendMs: null,
    observedMs: null,
    millicpu: 1000,
    memoryMb: 1024,
    cpuMs: null,
    peakMemoryMb: null,
    providerKeyId: null,
    payer: 'credits',
    ...changes,
  };
}

describe('metering', () => {
  it('metering charges a rate that no second would round to anything', () => {
    // 10 GiB of storage at 30,000 pico-USD a second: a day is 2,592 µ$, each second 0.03.
    expect(cumulativeMicroUsd(meterAt(30_000n), 86_400_000)).toBe(2_592);
  });

  it('metering gives one total however it is sliced', () => {
    const slices = fc.array(fc.integer({ min: 0, max: 100_000 }), { maxLength: 50 });
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), slices, (rate, lengths) => {
        let meter = meterAt(rate);
        let now = 0;
        let charged = 0;
        for (const length of lengths) {
          now += length;
          charged += cumulativeMicroUsd(meter, now) - charged;
          meter = rebase(meter, now, rate);
        }
        expect(cumulativeMicroUsd(meter, now)).toBe(cumulativeMicroUsd(meterAt(rate), now));
        expect(charged).toBe(lengths.length === 0 ? 0 : cumulativeMicroUsd(meter, now));
      }),
    );
  });

  it('metering never runs backwards with the clock', () => {
    const meter = rebase(meterAt(10n ** 9n), 5_000, 10n ** 9n);
    expect(cumulativeMicroUsd(meter, 1_000)).toBe(cumulativeMicroUsd(meter, 5_000));
    expect(rebase(meter, 1_000, 0n).since).toBe(5_000);
  });

  it('metering costs nothing while paused at rate zero, and at least the minimum', () => {
    const paused = rebase(meterAt(10n ** 9n), 1_000, 0n);
    expect(cumulativeMicroUsd(paused, 3_600_000)).toBe(1_000);
    expect(cumulativeMicroUsd(meterAt(10n ** 9n, { minimumSeconds: 60 }), 1_000)).toBe(60_000);
  });

  it('metering holds at least what will be charged', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 12n }),
        fc.integer({ min: 1, max: 100_000 }),
        (rate, seconds) => {
          expect(costMicroUsd(rate, seconds)).toBeGreaterThanOrEqual(
            cumulativeMicroUsd(meterAt(rate), seconds * 1000),
          );
        },
      ),
    );
  });
});
