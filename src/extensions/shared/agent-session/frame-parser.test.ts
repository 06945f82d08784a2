import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameParser } from './frame-parser.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import { ProtocolViolation } from './protocol-violation.ts';
import { MAX_CONTROL, MAX_PAYLOAD, T } from './wire.ts';

function frame(type: number, channel: number, payload: Buffer, length = payload.length): Buffer {
  return Buffer.concat([new PayloadWriter().u32(length).u16(type).u32(channel).bytes(), payload]);
}

function parse(chunks: readonly Buffer[]) {
  const seen: { type: number; channel: number; bytes: string; whole: boolean }[] = [];
  let pieces: Buffer[] = [];
  const parser = new FrameParser({
    frame: (type, channel, payload) =>
      seen.push({ type, channel, bytes: payload.toString('hex'), whole: true }),
    begin: () => {
      pieces = [];
    },
    piece: (type, channel, bytes, ended) => {
      pieces.push(bytes);
      if (ended !== null)
        seen.push({ type, channel, bytes: Buffer.concat(pieces).toString('hex'), whole: false });
    },
  });
  for (const chunk of chunks) parser.push(chunk);
  return { seen, between: parser.between };
}

const aFrame = fc.record({
  type: fc.constantFrom(T.stdout, T.data, T.result, T.error, T.exit, T.entries),
  channel: fc.integer({ min: 1, max: 0xffff_ffff }),
  payload: fc.uint8Array({ minLength: 1, maxLength: 600 }),
});

describe('FrameParser', () => {
  it('FrameParser gives the same frames however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(aFrame, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 200 })),
        (frames, cuts) => {
          const stream = Buffer.concat(
            frames.map(({ type, channel, payload }) => frame(type, channel, Buffer.from(payload))),
          );
          const chunks: Buffer[] = [];
          let at = 0;
          for (let n = 0; at < stream.length; n += 1) {
            const size = cuts.length === 0 ? stream.length : (cuts[n % cuts.length] ?? 1);
            chunks.push(stream.subarray(at, at + size));
            at += size;
          }
          const { seen, between } = parse(chunks);
          expect(between).toBe(true);
          expect(seen.map(({ type, channel, bytes }) => ({ type, channel, bytes }))).toEqual(
            frames.map(({ type, channel, payload }) => ({
              type,
              channel,
              bytes: Buffer.from(payload).toString('hex'),
            })),
          );
        },
      ),
    );
  });

  it('FrameParser refuses what is too large, unknown or meant for the other side', () => {
    expect(() => parse([frame(T.stdout, 1, Buffer.alloc(0), MAX_PAYLOAD + 1)])).toThrow(ProtocolViolation);
    expect(() => parse([frame(T.result, 1, Buffer.alloc(0), MAX_CONTROL + 1)])).toThrow(ProtocolViolation);
    expect(() => parse([frame(T.stdout, 1, Buffer.alloc(0))])).toThrow(ProtocolViolation);
    expect(() => parse([frame(0x7777, 1, Buffer.alloc(0))])).toThrow(ProtocolViolation);
    expect(() => parse([frame(T.spawn, 1, Buffer.alloc(0))])).toThrow(ProtocolViolation);
  });

  it('FrameParser ends or throws a violation on any bytes at all', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), (chunks) => {
        try {
          parse(chunks.map((chunk) => Buffer.from(chunk)));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolViolation);
        }
      }),
    );
  });
});

describe('PayloadReader', () => {
  it('PayloadReader reads what PayloadWriter wrote', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes('\0')),
        fc.maxSafeNat(),
        (text, number) => {
          const bytes = new PayloadWriter().string(text).u64(number).u8(7).u16(65_535).bytes();
          const reader = new PayloadReader(bytes);
          expect(reader.string(100_000)).toBe(Buffer.from(text).toString());
          expect(reader.u64()).toBe(number);
          expect([reader.u8(), reader.u16()]).toEqual([7, 65_535]);
          reader.end();
        },
      ),
    );
  });

  it('PayloadReader refuses texts that are too long, cut off or hold a NUL byte, and numbers beyond what is exact', () => {
    const text = new PayloadWriter().string('hello').bytes();
    expect(() => new PayloadReader(text).string(4)).toThrow(ProtocolViolation);
    expect(() => new PayloadReader(text.subarray(0, -1)).string(100)).toThrow(ProtocolViolation);
    const nul = Buffer.from(text);
    nul[6] = 0;
    expect(() => new PayloadReader(nul).string(100)).toThrow(ProtocolViolation);
    expect(() => new PayloadReader(Buffer.alloc(8, 0xff)).u64()).toThrow(ProtocolViolation);
    expect(() => new PayloadReader(text).end()).toThrow(ProtocolViolation);
  });
});
