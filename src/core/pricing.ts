import type { Price, Quote } from '../contract/money.ts';
import type { Resources } from '../contract/profile.ts';
import { costMicroUsd } from './meter.ts';

const FREE: Price = {
  version: 'free',
  create_fee_micro_usd: 0,
  base_pico_usd_per_second: '0',
  vcpu_pico_usd_per_second: '0',
  gib_pico_usd_per_second: '0',
  gpu_pico_usd_per_second: '0',
  bills_when_paused: false,
  minimum_seconds: 0,
};

export function priceOrFree(price: Price | null): Price {
  return price ?? FREE;
}

/** pico-USD per second of a sandbox of this size. Fractions of a core or a gibibyte are exact to a thousandth. */
export function rateOf(price: Price, resources: Resources): bigint {
  const milliCpu = BigInt(Math.round((resources.cpu ?? 1) * 1000));
  const memoryMb = BigInt(resources.memory_mb ?? 1024);
  return (
    BigInt(price.base_pico_usd_per_second) +
    (BigInt(price.vcpu_pico_usd_per_second) * milliCpu) / 1000n +
    (BigInt(price.gib_pico_usd_per_second) * memoryMb) / 1024n +
    (resources.gpu === null ? 0n : BigInt(price.gpu_pico_usd_per_second))
  );
}

export function quoteFor(extension: string, price: Price, resources: Resources, seconds: number): Quote {
  const rate = rateOf(price, resources);
  const billed = Math.max(seconds, price.minimum_seconds);
  return {
    extension,
    price_version: price.version,
    create_fee_micro_usd: price.create_fee_micro_usd,
    pico_usd_per_second: rate.toString(),
    micro_usd_per_hour: costMicroUsd(rate, 3600),
    seconds,
    max_charge_micro_usd: price.create_fee_micro_usd + costMicroUsd(rate, billed),
  };
}
