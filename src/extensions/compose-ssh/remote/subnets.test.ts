import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POOL } from '../config.ts';
import { freeSubnets, fromTheTop, prefixFor, routesOf } from './subnets.ts';

function range(subnet: string): [number, number] {
  const [address = '', bits = ''] = subnet.split('/');
  const size = 2 ** (32 - Number(bits));
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = value - (value % size);
  return [first, first + size - 1];
}

const overlap = (a: string, b: string) => {
  const [[first, last], [from, to]] = [range(a), range(b)];
  return first <= to && from <= last;
};

describe('subnets of stacks', () => {
  it('an engine holds far more of them than the 31 networks it has by itself', () => {
    const taken: string[] = [];
    for (let stack = 0; stack < 200; stack += 1) {
      const found = freeSubnets(DEFAULT_POOL, taken, {
        prefix: prefixFor(8),
        count: 2,
        seed: `stack ${stack}`,
      });
      expect(found).toHaveLength(2);
      for (const subnet of found) expect(taken.some((other) => overlap(other, subnet))).toBe(false);
      taken.push(...found);
    }
  });

  it('subnets of stacks avoid those in use, hold their containers, and end with a typed error', () => {
    const subnet = fc
      .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 20, max: 30 }))
      .map(([third, bits]) => `10.9.${third}.0/${bits}`);
    fc.assert(
      fc.property(
        fc.array(subnet, { maxLength: 20 }),
        fc.integer({ min: 1, max: 120 }),
        fc.integer({ min: 1, max: 6 }),
        fc.string(),
        (taken, containers, count, seed) => {
          const prefix = prefixFor(containers);
          expect(2 ** (32 - prefix)).toBeGreaterThanOrEqual(containers + 4);
          const found = freeSubnets('10.9.0.0/16', taken, { prefix, count, seed });
          for (const [n, one] of found.entries()) {
            expect(overlap(one, '10.9.0.0/16')).toBe(true);
            for (const other of [...taken, ...found.slice(0, n)]) expect(overlap(one, other)).toBe(false);
          }
          expect(freeSubnets('10.9.0.0/16', [...taken, '10.0.0.0/8'], { prefix, count, seed })).toEqual([]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('routes of the host are read from the kernel’s own table, without the default one', () => {
    const table = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'wg0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0',
      'rubbish',
    ].join('\n');
    expect(routesOf(table)).toEqual(['192.168.1.0/24', '10.0.0.0/8']);
    expect(fromTheTop('10.9.0.16/28', 0)).toBe('10.9.0.30');
  });
});
