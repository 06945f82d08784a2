import { isUtf8 } from 'node:buffer';
import type { ExecStreamItem } from '../../contract/sandboxes/exec.ts';
import { FRAME_TYPE } from '../../contract/sandboxes/exec.ts';
import type { OutputChunk, OutputGap } from '../../core/ports/session.ts';

export type ControlItem = Exclude<ExecStreamItem, { type: 'stdout' | 'stderr' | 'terminal' }>;

export const NDJSON = 'application/x-ndjson';
export const EVENT_STREAM = 'text/event-stream';

const HEADER_BYTES = 5;
/** Below this, one copy is cheaper than one more piece. */
const COPY_BELOW = 16_384;

/** Encodes an item as a binary frame: a type byte, a big-endian length, the payload. */
export function frame(type: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes[0] = type;
  bytes.writeUInt32BE(payload.length, 1);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** Encodes output as it is; large chunks are not copied. */
export function outputFrame({ stream, data }: OutputChunk): readonly Uint8Array[] {
  const type = FRAME_TYPE[stream];
  if (data.length < COPY_BELOW) return [frame(type, data)];
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header[0] = type;
  header.writeUInt32BE(data.length, 1);
  return [header, data];
}

export function controlFrame(item: ControlItem): Buffer {
  return frame(FRAME_TYPE[item.type], Buffer.from(JSON.stringify(item)));
}

export function gapItem({ offset, missing }: OutputGap): ControlItem {
  return { type: 'gap', offset, missing };
}

/** Encodes text as text and other bytes as base64: every byte arrives. */
function outputItem({ stream, offset, data }: OutputChunk): ExecStreamItem {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return { type: stream, offset, data: bytes.toString(encoding), encoding };
}

/** The form of a stream of items on the wire. */
export interface ItemFormat {
  output(chunk: OutputChunk): readonly (Uint8Array | string)[];
  control(item: ControlItem): Uint8Array | string;
}

const line = (item: ExecStreamItem) => `${JSON.stringify(item)}\n`;

/** The id of a server-sent event is where to go on reading. */
function sent(item: ExecStreamItem, id?: number): string {
  return `event: ${item.type}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(item)}\n\n`;
}

export const FRAMES: ItemFormat = { output: outputFrame, control: controlFrame };
export const LINES: ItemFormat = { output: (chunk) => [line(outputItem(chunk))], control: line };
export const SERVER_SENT: ItemFormat = {
  output: (chunk) => [sent(outputItem(chunk), chunk.offset + chunk.data.length)],
  control: (item) => sent(item),
};
