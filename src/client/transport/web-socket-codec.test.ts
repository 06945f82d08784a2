import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeClose, encodeWebSocketFrame, OPCODE, WebSocketDecoder } from './web-socket-codec.ts';

/** Encodes a frame as a server sends it: no mask. */
function serverFrame(opcode: number, payload: Uint8Array, final = true): Buffer {
  const length = payload.length;
  const head =
    length < 126
      ? Buffer.from([0, length])
      : length < 65_536
        ? Buffer.from([0, 126, length >> 8, length & 0xff])
        : Buffer.concat([
            Buffer.from([0, 127, 0, 0, 0, 0]),
            Buffer.from([0, length >> 16, (length >> 8) & 0xff, length & 0xff]),
          ]);
  head[0] = (final ? 0x80 : 0) | opcode;
  return Buffer.concat([head, payload]);
}

/** Decodes a frame as a server reads it: with the mask removed. */
function unmasked(frame: Buffer): { opcode: number; payload: Buffer } {
  const short = (frame[1] as number) & 0x7f;
  const at = 2 + (short < 126 ? 0 : short === 126 ? 2 : 8);
  const mask = frame.subarray(at, at + 4);
  const payload = Buffer.from(frame.subarray(at + 4));
  for (let index = 0; index < payload.length; index += 1) {
    payload[index] = (payload[index] as number) ^ (mask[index % 4] as number);
  }
  return { opcode: (frame[0] as number) & 0x0f, payload };
}

describe('frames that go out', () => {
  it('outgoing frames are masked and carry the payload, whatever its length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (payload) => {
        const frame = encodeWebSocketFrame(OPCODE.binary, payload);
        expect((frame[1] as number) & 0x80).toBe(0x80);
        expect(unmasked(frame)).toEqual({ opcode: OPCODE.binary, payload: Buffer.from(payload) });
      }),
    );
    for (const length of [125, 126, 65_535, 65_536, 200_003]) {
      const payload = Buffer.alloc(length, 0x5a);
      expect(unmasked(encodeWebSocketFrame(OPCODE.binary, payload)).payload.equals(payload)).toBe(true);
    }
  });

  it('outgoing frames leave the caller’s bytes unchanged and use a fresh mask each time', () => {
    const payload = Buffer.from('unchanged');
    const first = encodeWebSocketFrame(OPCODE.text, payload);
    const second = encodeWebSocketFrame(OPCODE.text, payload);
    expect(payload.toString()).toBe('unchanged');
    expect(first.equals(second)).toBe(false);
  });

  it('outgoing frames close with a code and a reason that fits', () => {
    const { opcode, payload } = unmasked(encodeClose(1001, 'x'.repeat(500)));
    expect(opcode).toBe(OPCODE.close);
    expect(payload.readUInt16BE(0)).toBe(1001);
    expect(payload.length).toBe(125);
  });
});

describe('WebSocketDecoder', () => {
  it('WebSocketDecoder gives whole messages however the stream is cut', () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 400 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(messages, fc.integer({ min: 1, max: 37 }), (payloads, size) => {
        const stream = Buffer.concat(payloads.map((payload) => serverFrame(OPCODE.binary, payload)));
        const decoder = new WebSocketDecoder();
        const seen: Buffer[] = [];
        for (let at = 0; at < stream.length; at += size) {
          for (const { data } of decoder.decode(stream.subarray(at, at + size))) seen.push(Buffer.from(data));
        }
        expect(seen).toEqual(payloads.map((payload) => Buffer.from(payload)));
      }),
    );
  });

  it('WebSocketDecoder reads long lengths', () => {
    const payload = Buffer.alloc(70_000, 1);
    const [message] = new WebSocketDecoder().decode(serverFrame(OPCODE.binary, payload));
    expect(message?.data.equals(payload)).toBe(true);
  });

  it('WebSocketDecoder joins fragments and lets control frames through in between', () => {
    const stream = Buffer.concat([
      serverFrame(OPCODE.text, Buffer.from('ab'), false),
      serverFrame(OPCODE.ping, Buffer.from('hi')),
      serverFrame(OPCODE.continuation, Buffer.from('cd')),
    ]);
    const messages = new WebSocketDecoder().decode(stream);
    expect(messages.map(({ opcode, data }) => [opcode, data.toString()])).toEqual([
      [OPCODE.ping, 'hi'],
      [OPCODE.text, 'abcd'],
    ]);
  });

  it.each([
    ['a masked frame', Buffer.from([0x82, 0x80, 0, 0, 0, 0])],
    ['reserved bits', Buffer.from([0xc2, 0x00])],
    ['a fragmented control frame', serverFrame(OPCODE.ping, Buffer.alloc(0), false)],
    ['a continuation of nothing', serverFrame(OPCODE.continuation, Buffer.alloc(0))],
    [
      'a message inside another',
      Buffer.concat([serverFrame(1, Buffer.alloc(0), false), serverFrame(1, Buffer.alloc(0))]),
    ],
    ['a message beyond all bounds', Buffer.from([0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0])],
  ])('WebSocketDecoder refuses %s', (_what, bytes) => {
    expect(() => new WebSocketDecoder().decode(bytes)).toThrow(/WebSocket is damaged/);
  });
});
