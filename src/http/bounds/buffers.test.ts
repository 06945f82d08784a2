import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BufferBudget } from './buffer-budget.ts';
import { isLarge, jsonPieces } from './json-pieces.ts';
import { MessageMeter } from './message-meter.ts';

const caller = (keyId: string) => ({ keyId, local: false });

describe('BufferBudget', () => {
  it('BufferBudget: a key is refused above its share, all keys together above the total', () => {
    const budget = new BufferBudget({ perKey: 100, total: 150 });
    const [one, two] = [budget.lease(caller('a')), budget.lease(caller('a'))];
    const other = budget.lease(caller('b'));
    one.grow(60);
    expect(() => two.grow(50)).toThrow(expect.objectContaining({ code: 'SBX_RATE_LIMITED' }));
    two.grow(40);
    expect(() => other.grow(60)).toThrow(expect.objectContaining({ code: 'SBX_UNAVAILABLE' }));
    one.release();
    expect(other.tryGrow(60)).toBe(true);
    expect(budget.total).toBe(100);
  });

  it('BufferBudget: whatever leases do, the sum of what they hold is what the budget counts', () => {
    const step = fc.record({
      lease: fc.nat(4),
      bytes: fc.integer({ min: -50, max: 80 }),
      release: fc.boolean(),
    });
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const budget = new BufferBudget({ perKey: 100, total: 150 });
        const leases = Array.from({ length: 5 }, (_, at) => budget.lease(caller(`k${at % 2}`)));
        for (const { lease: at, bytes, release } of steps) {
          const lease = leases[at] as (typeof leases)[number];
          if (release) lease.release();
          else if (bytes < 0) lease.shrink(-bytes);
          else lease.tryGrow(bytes);
          expect(leases.reduce((sum, { held }) => sum + held, 0)).toBe(budget.total);
          expect(budget.total).toBeLessThanOrEqual(150);
        }
        for (const lease of leases) lease.release();
        expect(budget.total).toBe(0);
      }),
    );
  });
});

describe('MessageMeter', () => {
  /** A frame as a client sends it, masked with zeros. */
  function framed(payload: Buffer, opcode: number, fin: boolean): Buffer {
    const { length } = payload;
    const short = length < 126 ? length : length < 65_536 ? 126 : 127;
    const extended = Buffer.alloc(short === 126 ? 2 : short === 127 ? 8 : 0);
    if (short === 126) extended.writeUInt16BE(length);
    if (short === 127) extended.writeBigUInt64BE(BigInt(length));
    const start = Buffer.from([(fin ? 0x80 : 0) | opcode, 0x80 | short]);
    return Buffer.concat([start, extended, Buffer.alloc(4), payload]);
  }

  it('MessageMeter: follows messages of any size, fragmented and with pings between, however they are cut', () => {
    const size = fc.oneof(fc.nat(200), fc.constantFrom(125, 126, 65_535, 65_536, 70_000));
    const message = fc.array(size, { minLength: 1, maxLength: 4 });
    void fc.assert(
      fc.property(
        fc.array(message, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 9_000 }),
        (messages, cut) => {
          const frames = messages.flatMap((parts) =>
            parts.flatMap((bytes, at) => [
              framed(Buffer.alloc(bytes), at === 0 ? 2 : 0, at === parts.length - 1),
              ...(at < parts.length - 1 ? [framed(Buffer.from('hi'), 9, true)] : []),
            ]),
          );
          const wire = Buffer.concat(frames);
          const meter = new MessageMeter();
          for (let at = 0; at < wire.length; at += cut) meter.feed(wire.subarray(at, at + cut));
          expect([meter.messages, meter.held, meter.isOpen]).toEqual([messages.length, 0, false]);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('MessageMeter: an incomplete message is held as far as it arrived', () => {
    const meter = new MessageMeter();
    meter.feed(framed(Buffer.alloc(1_000), 2, false));
    meter.feed(framed(Buffer.alloc(500), 0, true).subarray(0, 408));
    expect([meter.messages, meter.held, meter.isOpen]).toEqual([0, 1_400, true]);
  });
});

describe('jsonPieces', () => {
  it('jsonPieces: together they are what JSON.stringify makes, and no piece is long', () => {
    const long = '😀"\\é\n'.repeat(30_000);
    const items = Array.from({ length: 500 }, (_, at) => ({ at, name: 'x', none: undefined }));
    for (const body of [
      { a: long, b: null, c: [1, undefined], d: {} },
      { items, next_cursor: null },
    ]) {
      const pieces = [...jsonPieces(body)];
      expect(JSON.parse(pieces.join(''))).toEqual(JSON.parse(JSON.stringify(body)));
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(512 * 1024);
      expect(isLarge(body)).toBe(true);
    }
    expect(isLarge({ items: [] })).toBe(false);
  });

  it('jsonPieces: any JSON value is written as it is', () => {
    void fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse([...jsonPieces(value)].join(''))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
