import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { sampleHeader, sampleRouteInput } from '../../tests/support/route-samples.ts';
import type { PriceListEntry } from '../contract/money/price-list.ts';
import { expectedRateOf, quoteFor } from '../core/credits/pricing.ts';
import { unmeasured } from '../core/health/standing.ts';
import { decide, rankedCandidates } from '../core/routing/routing.ts';
import { latencyPriorOf, loadPriceList, priceOn } from './price-list.ts';

const folder = fileURLToPath(new URL('../../registry/prices', import.meta.url));
const { entries, problems } = await loadPriceList(folder);
const today = '2026-11-15';

function entryOf(provider: string): PriceListEntry {
  const entry = entries.find((one) => one.provider === provider);
  if (!entry) throw new Error(`no price list of ${provider}`);
  return entry;
}

const priceOf = (provider: string) =>
  (priceOn(entryOf(provider), today) as NonNullable<ReturnType<typeof priceOn>>).price;
const small = { cpu: 1, memory_mb: 2048, disk_mb: null, pids: null, open_files: null, gpu: null };

/** µ$ per second to as many digits as the expected text has. */
function printed(provider: string, cpuUtilisation: number, like: string): string {
  const rate = expectedRateOf(priceOf(provider), small, { cpuUtilisation, memoryUtilisation: 1 });
  const decimals = like.split('.')[1]?.length ?? 0;
  const unit = 10n ** BigInt(6 - decimals);
  const rounded = ((rate + unit / 2n) / unit).toString().padStart(decimals + 1, '0');
  return decimals === 0 ? rounded : `${rounded.slice(0, -decimals)}.${rounded.slice(-decimals)}`;
}

describe('the price list', () => {
  it('the price list has no problem', () => {
    expect(problems).toEqual([]);
    expect(entries.length).toBeGreaterThan(10);
  });

  it.each([
    ['e2b', ['23.0', '23.0', '23.0', '23.0']],
    ['daytona', ['23.0', '23.0', '23.0', '23.0']],
    ['blaxel', ['23.0', '23.0', '23.0', '23.0']],
    ['northflank', ['9.26', '9.26', '9.26', '9.26']],
    ['cloudflare', ['25.0', '15.0', '10.0', '7.0']],
    ['agentcore', ['30.1', '17.7', '11.5', '7.7']],
    ['vercel', ['47.3', '29.6', '20.7', '15.3']],
    ['cloud-run', ['22.0', null, null, '22.0']],
    ['modal', ['33.2', null, null, null]],
    ['lambda-microvm', ['35.0', null, null, null]],
    ['runloop', ['44.0', null, null, null]],
    ['beam', ['64.0', null, null, null]],
  ] as [string, (string | null)[]][])(
    'the price list gives the known cost of one vCPU and 2 GiB on %s',
    (provider, row) => {
      for (const [index, expected] of row.entries()) {
        if (expected === null) continue;
        expect(printed(provider, [1, 0.5, 0.25, 0.1][index] as number, expected)).toBe(expected);
      }
    },
  );

  it('the price list sells whole sizes by the minute where the vendor does', () => {
    const quote = quoteFor({
      extension: 'ext.codesandbox',
      price: priceOf('codesandbox'),
      resources: small,
      seconds: 61,
      region: null,
      expected: { seconds: 61, cpuUtilisation: 0.1, memoryUtilisation: 1 },
    });
    expect(quote.pico_usd_per_second).toBe('41280000');
    expect(quote.max_charge_micro_usd).toBe(Math.ceil(41.28 * 120));
  });

  it('the price list knows a price only from the day it took effect', () => {
    expect(priceOn(entryOf('vercel'), '2025-11-25')).toBeNull();
    expect(priceOn(entryOf('vercel'), '2025-11-26')?.price.version).toBe('vercel-2025-11-26');
  });
});

function cheaper(cpuUtilisation: number): string | undefined {
  const headers = ['vercel', 'e2b'].map((provider) =>
    sampleHeader(`ext.${provider}`, { price: priceOf(provider) }),
  );
  const route = { strategy: 'lowest-cost' as const, expect: { cpu_utilisation: cpuUtilisation } };
  const standing = Object.fromEntries(headers.map(({ id }) => [id, unmeasured('healthy', 'fast')]));
  const resources = { cpu: 1, memory_mb: 2048 };
  const plan = decide(sampleRouteInput({ resources, route }, headers, { standing }));
  return rankedCandidates(plan)[0]?.extension;
}

describe('the router on listed prices', () => {
  it('the router finds where work-billed Vercel and E2B cost the same: 31.6 % of a processor', () => {
    let low = 0;
    let high = 1;
    while (high - low > 0.0005) {
      const middle = (low + high) / 2;
      if (cheaper(middle) === 'ext.vercel') low = middle;
      else high = middle;
    }
    expect(low).toBeGreaterThan(0.311);
    expect(high).toBeLessThan(0.321);
  });

  it('the router believes latencies measured by others until it has its own', () => {
    expect(latencyPriorOf(entryOf('daytona'))).toEqual({ aloneMs: 186, burstMs: 367 });
    expect(latencyPriorOf(entryOf('northflank'))).toBeNull();
  });
});
