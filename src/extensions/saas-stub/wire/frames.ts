/** The wire of a channel: one type byte, a big-endian u32 length, the payload. */
import { FRAME_TYPE } from '../../../contract/sandboxes/exec.ts';

export const CHANNEL_FRAME = {
  ...FRAME_TYPE,
  /** Bytes of a file, a tar stream or a port; an empty frame is their end. */
  data: 32,
  /** JSON: the answer to the channel's request. */
  result: 33,
  /** JSON: one file change. */
  change: 34,
} as const;

export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

const HEADER_BYTES = 5;
export const MAX_FRAME_BYTES = 1_048_576;

export function encodeFrame(type: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame[0] = type;
  frame.writeUInt32BE(payload.length, 1);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

export function encodeJsonFrame(type: number, value: unknown): Buffer {
  return encodeFrame(type, Buffer.from(JSON.stringify(value)));
}

/** Splits a byte stream into frames; holds at most one incomplete frame. Throws on a frame that is too large. */
export async function* decodeFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
    while (pending.length >= HEADER_BYTES) {
      const length = pending.readUInt32BE(1);
      if (length > MAX_FRAME_BYTES) throw new Error(`A frame of ${length} bytes is too large.`);
      if (pending.length < HEADER_BYTES + length) break;
      const payload = pending.subarray(HEADER_BYTES, HEADER_BYTES + length);
      const type = pending[0] ?? 0;
      pending = pending.subarray(HEADER_BYTES + length);
      yield { type, payload };
    }
  }
  if (pending.length > 0) throw new Error('The stream ended inside a frame.');
}
