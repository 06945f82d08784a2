import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FRAMES_MEDIA_TYPE as CONTRACT_MEDIA,
  FRAME_TYPE as CONTRACT_TYPES,
} from '../../contract/sandboxes/exec.ts';
import { API_VERSION as CONTRACT_VERSION } from '../../contract/values/version.ts';
import { SandboxerApiError } from '../transport/api-error.ts';
import { API_VERSION } from '../transport/open-transport.ts';
import type { ExecChunk } from './frames.ts';
import { encodeFrame, FRAME_TYPE, FRAMES_MEDIA_TYPE, FrameDecoder } from './frames.ts';

const EXIT = { code: 0, signal: null, timed_out: false, out_of_memory: false };

function json(type: number, item: object): Buffer {
  return encodeFrame(type, Buffer.from(JSON.stringify(item)));
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const parts: Buffer[] = [];
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] as number;
    parts.push(bytes.subarray(at, at + size));
    at += size;
  }
  return parts;
}

describe('constants of the contract that the client repeats', () => {
  it('FRAME_TYPE and API_VERSION of the client equal those of the contract', () => {
    expect(FRAME_TYPE).toEqual(CONTRACT_TYPES);
    expect(FRAMES_MEDIA_TYPE).toBe(CONTRACT_MEDIA);
    expect(API_VERSION).toBe(CONTRACT_VERSION);
  });
});

describe('FrameDecoder', () => {
  it('FrameDecoder gives the same bytes and offsets however the stream is cut', () => {
    const payload = fc.uint8Array({ maxLength: 40 });
    const output = fc.tuple(fc.constantFrom(1, 2), payload);
    const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(output, { maxLength: 20 }), sizes, (frames, pieces) => {
        const stream = Buffer.concat([
          json(FRAME_TYPE.started, { type: 'started', process_id: 'p1' }),
          ...frames.map(([type, data]) => encodeFrame(type, data)),
          json(FRAME_TYPE.exit, { type: 'exit', exit: EXIT, duration_ms: 1 }),
        ]);
        const decoder = new FrameDecoder();
        const chunks: ExecChunk[] = cut(stream, pieces).flatMap((piece) => decoder.decode(piece));
        expect(chunks[0]).toEqual({ type: 'started', process_id: 'p1' });
        expect(chunks.at(-1)).toEqual({ type: 'exit', exit: EXIT, duration_ms: 1 });
        let offset = 0;
        const seen: Record<string, Buffer[]> = { stdout: [], stderr: [] };
        for (const chunk of chunks.slice(1, -1)) {
          if (chunk.type !== 'stdout' && chunk.type !== 'stderr') throw new Error(chunk.type);
          expect(chunk.offset).toBe(offset);
          offset += chunk.data.length;
          seen[chunk.type]?.push(chunk.data);
        }
        for (const [type, name] of [[1, 'stdout'] as const, [2, 'stderr'] as const]) {
          const sent = Buffer.concat(frames.filter((frame) => frame[0] === type).map((frame) => frame[1]));
          expect(Buffer.concat(seen[name] ?? [])).toEqual(sent);
        }
      }),
    );
  });

  it('FrameDecoder does not copy output', () => {
    const frame = encodeFrame(FRAME_TYPE.stdout, Buffer.alloc(100));
    const [chunk] = new FrameDecoder().decode(frame);
    expect(chunk?.type === 'stdout' && chunk.data.buffer).toBe(frame.buffer);
  });

  it('FrameDecoder moves the offset over a gap and starts where it was told', () => {
    const decoder = new FrameDecoder(10);
    const gap = json(FRAME_TYPE.gap, { type: 'gap', offset: 10, missing: 90 });
    const chunks = decoder.decode(Buffer.concat([gap, encodeFrame(FRAME_TYPE.stdout, Buffer.from('x'))]));
    expect(chunks).toEqual([
      { type: 'gap', offset: 10, missing: 90 },
      { type: 'stdout', offset: 100, data: Buffer.from('x') },
    ]);
  });

  it('FrameDecoder throws the problem of an error frame', () => {
    const problem = { code: 'SBX_BACKEND_LOST', detail: 'gone', status: 502, remedy: 'r', retryable: false };
    const frame = json(FRAME_TYPE.error, { type: 'error', problem });
    expect(() => new FrameDecoder().decode(frame)).toThrow(SandboxerApiError);
  });

  it('FrameDecoder skips frames of a later version and refuses endless ones', () => {
    expect(new FrameDecoder().decode(encodeFrame(77, Buffer.from('?')))).toEqual([]);
    const endless = Buffer.from([FRAME_TYPE.exit, 0xff, 0xff, 0xff, 0xff]);
    expect(() => new FrameDecoder().decode(endless)).toThrow(/too long/);
  });
});
