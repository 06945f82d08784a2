import { expect, test } from 'vitest';
import { ExecStreamItem, FRAME_TYPE } from '../../contract/sandboxes/exec.ts';
import { FRAMES, LINES, outputFrame, SERVER_SENT } from './stream-item.ts';

const chunk = (data: Uint8Array) => ({ stream: 'stderr' as const, offset: 7, data });

test('text stays text, bytes become base64', () => {
  const text = ExecStreamItem.parse(JSON.parse(LINES.output(chunk(Buffer.from('é\n'))).join('')));
  expect(text).toEqual({ type: 'stderr', offset: 7, data: 'é\n', encoding: 'utf8' });
  const half = ExecStreamItem.parse(JSON.parse(LINES.output(chunk(Buffer.from([0xc3]))).join('')));
  expect(half).toEqual({ type: 'stderr', offset: 7, data: 'ww==', encoding: 'base64' });
});

test('a server-sent event stays one event, whatever its content, and its id is the place to continue', () => {
  const event = SERVER_SENT.output(chunk(Buffer.from('a\n\ndata: b\r\n'))).join('');
  expect(event.match(/\n/g)).toHaveLength(4);
  expect(event).toMatch(/^event: stderr\nid: 19\ndata: \{.*\}\n\n$/);
});

test('frames: small ones in one piece, large ones without a copy', () => {
  const small = outputFrame(chunk(Buffer.from('hi')));
  expect(small).toEqual([Buffer.from([FRAME_TYPE.stderr, 0, 0, 0, 2, 104, 105])]);
  const data = Buffer.alloc(100_000, 1);
  const [header, body] = outputFrame(chunk(data));
  expect(header).toEqual(Buffer.from([FRAME_TYPE.stderr, 0, 1, 0x86, 0xa0]));
  expect(body).toBe(data);
  const control = FRAMES.control({ type: 'gap', offset: 1, missing: 2 }) as Buffer;
  expect(control[0]).toBe(FRAME_TYPE.gap);
  expect(JSON.parse(control.subarray(5).toString())).toEqual({ type: 'gap', offset: 1, missing: 2 });
});
