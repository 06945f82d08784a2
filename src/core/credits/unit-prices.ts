import type { Price } from '../../contract/money/money.ts';
import type { Resources } from '../../contract/profiles/profile.ts';
import type { MaxPrice } from '../../contract/routing/route.ts';
import { inRegion, shapeFor, USUAL_SIZE } from './pricing.ts';

/** US dollars for one unit, or the reason why the price is unknown. */
export type UnitPrice = { readonly usd: number } | { readonly unknown: string };

const MIB_PER_GIB = 1024;

/**
 * Returns the real price of one unit of the requested resources, region included. A price of the sandbox as a whole, its base
 * rate or a size that is sold whole, counts in full towards each unit: no other way to bill gets around a ceiling. The size is
 * one that is sold.
 */
export function unitPrices(
  price: Price,
  resources: Resources,
  region: string | null,
): Record<keyof MaxPrice, UnitPrice> {
  const hourly = (rate: bigint) => (Number(inRegion(price, rate, region)) * 3600) / 1e12;
  const shape = shapeFor(price, resources);
  const whole = hourly(BigInt(price.base_pico_usd_per_second) + BigInt(shape?.pico_usd_per_second ?? '0'));
  const soldWhole = price.shapes !== undefined;
  const vcpus = resources.cpu ?? USUAL_SIZE.millicpu / 1000;
  const gib = (resources.memory_mb ?? USUAL_SIZE.memoryMb) / MIB_PER_GIB;
  const perUnit = (rate: string, units: number): UnitPrice => ({
    usd: (soldWhole ? 0 : hourly(BigInt(rate))) + whole / units,
  });
  return {
    vcpu_hour: perUnit(price.vcpu_pico_usd_per_second, vcpus),
    gib_hour: perUnit(price.gib_pico_usd_per_second, gib),
    gpu_hour: gpuPrice(price, resources.gpu, whole, hourly),
    create: { usd: price.create_fee_micro_usd / 1_000_000 },
  };
}

function gpuPrice(
  price: Price,
  gpu: string | null,
  wholeUsd: number,
  hourly: (rate: bigint) => number,
): UnitPrice {
  if (gpu === null) return { usd: 0 };
  const rate = BigInt(price.gpus?.[gpu] ?? price.gpu_pico_usd_per_second);
  if (rate === 0n && price.shapes !== undefined)
    return { unknown: `it names no price for the GPU ${gpu}, which its sizes may hold` };
  return { usd: hourly(rate) + wholeUsd };
}
