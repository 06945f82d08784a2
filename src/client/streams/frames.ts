import type { Problem } from '../../contract/errors/errors.ts';
import type { ExecStreamItem } from '../../contract/sandboxes/exec.ts';
import { SandboxerApiError } from '../transport/api-error.ts';
import { SandboxerConnectionError } from '../transport/connection-error.ts';

/** Copy of the contract's `FRAME_TYPE`; a test compares the two. */
export const FRAME_TYPE = {
  started: 0,
  stdout: 1,
  stderr: 2,
  terminal: 3,
  gap: 4,
  exit: 5,
  error: 6,
  stdin: 16,
  stdinEnd: 17,
  resize: 18,
  signal: 19,
} as const;
export const FRAMES_MEDIA_TYPE = 'application/vnd.sandboxer.frames';

export type OutputStream = 'stdout' | 'stderr' | 'terminal';

/** Output as it comes. `data` is a view of the received bytes: copy it to keep it beyond the next chunk's use. */
export interface OutputChunk {
  readonly type: OutputStream;
  /** Number of bytes of all output before this chunk. */
  readonly offset: number;
  readonly data: Buffer;
}

export type ExecChunk = OutputChunk | Extract<ExecStreamItem, { type: 'started' | 'gap' | 'exit' }>;

const HEADER_BYTES = 5;
const LONGEST_JSON = 1_048_576;
const OUTPUT_STREAMS: readonly (OutputStream | undefined)[] = [undefined, 'stdout', 'stderr', 'terminal'];

function damaged(what: string): SandboxerConnectionError {
  return new SandboxerConnectionError('protocol', `The output stream is damaged: ${what}.`, true);
}

export function encodeFrame(type: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame[0] = type;
  frame.writeUInt32BE(payload.length, 1);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/**
 * Takes bytes as they arrive and returns chunks. Output is passed on without a copy, even when a frame is not complete yet: a
 * frame's bounds mean nothing to a reader of output.
 */
export class FrameDecoder {
  readonly #header = Buffer.allocUnsafe(HEADER_BYTES);
  #headerHas = 0;
  #type = 0;
  #left = 0;
  #json: Buffer[] = [];
  #offset: number;

  /** `from` is the offset of the first byte of output that will come. */
  constructor(from = 0) {
    this.#offset = from;
  }

  decode(bytes: Buffer): ExecChunk[] {
    const chunks: ExecChunk[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#headerHas < HEADER_BYTES) {
        at = this.#takeHeader(bytes, at);
        if (this.#headerHas === HEADER_BYTES && this.#left === 0) this.#endFrame(chunks);
        continue;
      }
      const part = bytes.subarray(at, at + this.#left);
      at += part.length;
      this.#left -= part.length;
      const stream = OUTPUT_STREAMS[this.#type];
      if (stream === undefined) this.#json.push(part);
      else {
        chunks.push({ type: stream, offset: this.#offset, data: part });
        this.#offset += part.length;
      }
      if (this.#left === 0) this.#endFrame(chunks);
    }
    return chunks;
  }

  #takeHeader(bytes: Buffer, at: number): number {
    const taken = bytes.copy(this.#header, this.#headerHas, at, at + HEADER_BYTES - this.#headerHas);
    this.#headerHas += taken;
    if (this.#headerHas === HEADER_BYTES) {
      this.#type = this.#header[0] as number;
      this.#left = this.#header.readUInt32BE(1);
      if (OUTPUT_STREAMS[this.#type] === undefined && this.#left > LONGEST_JSON) {
        throw damaged('a frame is too long');
      }
    }
    return at + taken;
  }

  #endFrame(chunks: ExecChunk[]): void {
    this.#headerHas = 0;
    const parts = this.#json;
    this.#json = [];
    // Frames of a later version are skipped.
    if (OUTPUT_STREAMS[this.#type] !== undefined || this.#type > FRAME_TYPE.error) return;
    const item = parsedItem(Buffer.concat(parts));
    if (item.type === 'error') throw new SandboxerApiError(item.problem as unknown as Problem);
    if (item.type === 'gap') this.#offset = item.offset + item.missing;
    if (item.type === 'started' || item.type === 'gap' || item.type === 'exit') chunks.push(item);
  }
}

function parsedItem(json: Buffer): ExecStreamItem {
  try {
    return JSON.parse(json.toString('utf8')) as ExecStreamItem;
  } catch {
    throw damaged('a frame does not hold JSON');
  }
}
