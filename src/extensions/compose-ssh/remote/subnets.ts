import { createHash } from 'node:crypto';

interface Range {
  readonly first: number;
  readonly last: number;
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function addressOf(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** Parses `10.0.0.0/8`; returns `null` for a text that is not IPv4. */
function rangeOf(subnet: string): Range | null {
  const [, address, bits] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(subnet) ?? [];
  if (address === undefined || Number(bits) > 32) return null;
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(numberOf(address) / size) * size;
  return { first, last: first + size - 1 };
}

/** Returns the n-th address below the last one: the engine itself begins at the other end. */
export function fromTheTop(subnet: string, n: number): string {
  const range = rangeOf(subnet);
  return range === null ? '0.0.0.0' : addressOf(range.last - 1 - n);
}

/** Returns the subnets of the kernel’s own table: `/proc/net/route`. The default route takes none. */
export function routesOf(table: string): string[] {
  return table.split('\n').flatMap((line) => {
    const [, destination = '', , , , , , mask = ''] = line.trim().split(/\s+/);
    if (!/^[0-9A-F]{8}$/.test(destination) || !/^[0-9A-F]{8}$/.test(mask)) return [];
    const bytes = (hex: string) => [3, 2, 1, 0].map((n) => Number.parseInt(hex.slice(n * 2, n * 2 + 2), 16));
    const bits = bytes(mask).reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
    return bits === 0 ? [] : [`${bytes(destination).join('.')}/${bits}`];
  });
}

/** Returns the prefix of the smallest network with room for the containers, its own addresses and a few to spare. */
export function prefixFor(containers: number): number {
  return Math.min(28, 32 - Math.ceil(Math.log2(containers + 4)));
}

interface SubnetWish {
  readonly prefix: number;
  readonly count: number;
  readonly seed: string;
}

/**
 * Finds free subnets of the pool. The search begins at a place that depends on the stack, so that two stacks that are made at the
 * same moment rarely want the same; the engine refuses the second, which then searches with another seed.
 */
export function freeSubnets(
  pool: string,
  taken: readonly string[],
  { prefix, count, seed }: SubnetWish,
): string[] {
  const whole = rangeOf(pool);
  if (whole === null) return [];
  const size = 2 ** (32 - prefix);
  const slots = Math.floor((whole.last - whole.first + 1) / size);
  const used = taken.flatMap((subnet) => rangeOf(subnet) ?? []);
  const start = createHash('sha256').update(seed).digest().readUInt32BE(0) % Math.max(1, slots);
  const free: string[] = [];
  for (let n = 0; n < slots && free.length < count; n += 1) {
    const first = whole.first + ((start + n) % slots) * size;
    const last = first + size - 1;
    if (!used.some((range) => range.first <= last && first <= range.last))
      free.push(`${addressOf(first)}/${prefix}`);
  }
  return free;
}
