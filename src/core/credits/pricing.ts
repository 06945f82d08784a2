import type { BillingBasis, Price, PriceShape, Quote } from '../../contract/money/money.ts';
import type { Resources } from '../../contract/profiles/profile.ts';
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

/** The size that is assumed where the recipe leaves it to the backend. */
export const USUAL_SIZE = { millicpu: 1000, memoryMb: 1024 } as const;
const USUAL_VCPU = USUAL_SIZE.millicpu / 1000;
const USUAL_MEMORY_MB = USUAL_SIZE.memoryMb;

export function priceOrFree(price: Price | null): Price {
  return price ?? FREE;
}

/** The expected use of a sandbox: what a cost depends on besides its rate. */
export interface UsageExpectation {
  /** How long it will live. */
  readonly seconds: number;
  /** The share of its processors that it keeps busy, 0 to 1. */
  readonly cpuUtilisation: number;
  /** The share of its memory that it ever occupies, 0 to 1. */
  readonly memoryUtilisation: number;
}

const WHOLE = 1000n;
const FULL: Utilisation = { cpu: WHOLE, memory: WHOLE };

/** Shares in thousandths, so that a rate stays an exact integer. */
interface Utilisation {
  readonly cpu: bigint;
  readonly memory: bigint;
}

function thousandths(share: number): bigint {
  return BigInt(Math.round(Math.min(1, Math.max(0, share)) * 1000));
}

/** Returns the billed share of a unit that is used to this share. */
function billedShare(basis: BillingBasis | undefined, used: bigint): bigint {
  return basis === 'active' || basis === 'used' || basis === 'peak' ? used : WHOLE;
}

/** The cheapest size on sale that covers the request; `null` when none is large enough. */
export function shapeFor(price: Price, resources: Resources): PriceShape | null {
  const vcpu = resources.cpu ?? USUAL_VCPU;
  const memoryMb = resources.memory_mb ?? USUAL_MEMORY_MB;
  let cheapest: PriceShape | null = null;
  for (const shape of price.shapes ?? []) {
    if (shape.vcpu < vcpu || shape.memory_mb < memoryMb) continue;
    if (!cheapest || BigInt(shape.pico_usd_per_second) < BigInt(cheapest.pico_usd_per_second))
      cheapest = shape;
  }
  return cheapest;
}

/** Whether the backend sells this size at all. */
export function sellsSize(price: Price, resources: Resources): boolean {
  return price.shapes === undefined || shapeFor(price, resources) !== null;
}

function computeRate(price: Price, resources: Resources, used: Utilisation): bigint {
  if (price.shapes !== undefined) {
    const shape = shapeFor(price, resources);
    return shape === null
      ? 0n
      : (BigInt(shape.pico_usd_per_second) * billedShare(price.vcpu_basis, used.cpu)) / WHOLE;
  }
  const milliCpu = BigInt(Math.round((resources.cpu ?? USUAL_VCPU) * 1000));
  const memoryMb = BigInt(resources.memory_mb ?? USUAL_MEMORY_MB);
  const cpu = BigInt(price.vcpu_pico_usd_per_second) * milliCpu * billedShare(price.vcpu_basis, used.cpu);
  const memory =
    BigInt(price.gib_pico_usd_per_second) * memoryMb * billedShare(price.memory_basis, used.memory);
  return cpu / (1000n * WHOLE) + memory / (1024n * WHOLE);
}

function storageRate(price: Price, resources: Resources): bigint {
  const rate = price.storage_pico_usd_per_gib_second;
  if (rate === undefined || resources.disk_mb === null) return 0n;
  const paidMb = resources.disk_mb - (price.storage_free_gib ?? 0) * 1024;
  return paidMb <= 0 ? 0n : (BigInt(rate) * BigInt(Math.ceil(paidMb))) / 1024n;
}

function gpuRate(price: Price, gpu: string | null): bigint {
  return gpu === null ? 0n : BigInt(price.gpus?.[gpu] ?? price.gpu_pico_usd_per_second);
}

/** A rate as it is in this region. */
export function inRegion(price: Price, rate: bigint, region: string | null): bigint {
  const multiplier = region === null ? undefined : price.region_multipliers?.[region];
  return multiplier === undefined ? rate : (rate * BigInt(Math.round(multiplier * 1000))) / 1000n;
}

function rateAt(price: Price, resources: Resources, used: Utilisation, region: string | null): bigint {
  const rate =
    BigInt(price.base_pico_usd_per_second) +
    computeRate(price, resources, used) +
    storageRate(price, resources) +
    gpuRate(price, resources.gpu);
  return inRegion(price, rate, region);
}

/** Returns the pico-USD per second of a sandbox of this size, used to the full: the most it can cost. Exact to a thousandth. */
function rateOf(price: Price, resources: Resources, region: string | null = null): bigint {
  return rateAt(price, resources, FULL, region);
}

/** Returns the probable pico-USD per second: a backend that bills work done costs less while nothing is done. */
export function expectedRateOf(
  price: Price,
  resources: Resources,
  expected: Pick<UsageExpectation, 'cpuUtilisation' | 'memoryUtilisation'>,
  region: string | null = null,
): bigint {
  const used = { cpu: thousandths(expected.cpuUtilisation), memory: thousandths(expected.memoryUtilisation) };
  return rateAt(price, resources, used, region);
}

/** Returns the billed seconds for this much time: at least the minimum, in whole quanta. */
function billedSeconds(price: Price, seconds: number): number {
  const atLeast = Math.max(seconds, price.minimum_seconds) * 1000;
  const quantum = price.quantum_ms ?? 1;
  return (Math.ceil(atLeast / quantum) * quantum) / 1000;
}

export interface QuoteRequest {
  readonly extension: string;
  readonly price: Price;
  readonly resources: Resources;
  /** How long it may live. */
  readonly seconds: number;
  readonly region: string | null;
  readonly expected: UsageExpectation;
}

export function quoteFor(request: QuoteRequest): Quote {
  const { price, resources, seconds, region, expected } = request;
  const fee = price.create_fee_micro_usd;
  const rate = rateOf(price, resources, region);
  const likely = expectedRateOf(price, resources, expected, region);
  const likelySeconds = billedSeconds(price, Math.min(expected.seconds, seconds));
  return {
    extension: request.extension,
    price_version: price.version,
    create_fee_micro_usd: fee,
    pico_usd_per_second: rate.toString(),
    paused_pico_usd_per_second: (price.bills_when_paused ? rate : 0n).toString(),
    micro_usd_per_hour: costMicroUsd(rate, 3600),
    minimum_seconds: price.minimum_seconds,
    quantum_ms: price.quantum_ms ?? 1,
    seconds,
    max_charge_micro_usd: fee + costMicroUsd(rate, billedSeconds(price, seconds)),
    expected_charge_micro_usd: fee + costMicroUsd(likely, likelySeconds),
  };
}
