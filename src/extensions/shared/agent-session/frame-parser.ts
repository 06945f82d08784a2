import { ProtocolViolation } from './protocol-violation.ts';
import { comesFromAgent, HEADER_BYTES, isStream, MAX_CONTROL, MAX_PAYLOAD } from './wire.ts';

export interface FrameSink {
  /** Takes a frame that is read as a whole. The payload is valid during the call only. */
  frame(type: number, channel: number, payload: Buffer): void;
  /** Takes the begin of a frame of raw bytes. */
  begin(type: number, channel: number, length: number): void;
  /** Takes some of its bytes, without a copy; with the last of them `ended` is the length of the frame, and `null` before. */
  piece(type: number, channel: number, bytes: Buffer, ended: number | null): void;
}

const NOTHING = Buffer.alloc(0);

/** Cuts a stream of chunks into frames. Only a control frame that is spread over chunks is copied. */
export class FrameParser {
  readonly #sink: FrameSink;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerHave = 0;
  #type = 0;
  #channel = 0;
  #length = 0;
  #left = 0;
  #streaming = false;
  #whole: Buffer | null = null;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.#left > 0 ? this.#body(chunk, at) : this.#head(chunk, at);
  }

  /** Whether the stream may end here. */
  get between(): boolean {
    return this.#left === 0 && this.#headerHave === 0;
  }

  #head(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#headerHave === 0 && chunk.length - at >= HEADER_BYTES) {
      this.#begin(chunk, at);
      return at + HEADER_BYTES;
    }
    const count = Math.min(HEADER_BYTES - this.#headerHave, chunk.length - at);
    chunk.copy(this.#header, this.#headerHave, at, at + count);
    this.#headerHave += count;
    at += count;
    if (this.#headerHave === HEADER_BYTES) {
      this.#headerHave = 0;
      this.#begin(this.#header, 0);
    }
    return at;
  }

  #begin(bytes: Buffer, at: number): void {
    const length = bytes.readUInt32LE(at);
    this.#type = bytes.readUInt16LE(at + 4);
    this.#channel = bytes.readUInt32LE(at + 6);
    this.#streaming = isStream(this.#type);
    if (!comesFromAgent(this.#type)) throw new ProtocolViolation(`there is no frame of type ${this.#type}`);
    if (length > (this.#streaming ? MAX_PAYLOAD : MAX_CONTROL)) {
      throw new ProtocolViolation(`a frame of ${length} bytes is too large`);
    }
    if (this.#streaming) {
      if (length === 0) throw new ProtocolViolation('a frame of bytes holds none');
      this.#sink.begin(this.#type, this.#channel, length);
    } else if (length === 0) {
      this.#sink.frame(this.#type, this.#channel, NOTHING);
      return;
    }
    this.#length = length;
    this.#left = length;
  }

  #body(chunk: Buffer, at: number): number {
    const count = Math.min(this.#left, chunk.length - at);
    const bytes = count === chunk.length ? chunk : chunk.subarray(at, at + count);
    if (this.#streaming) {
      this.#left -= count;
      this.#sink.piece(this.#type, this.#channel, bytes, this.#left === 0 ? this.#length : null);
      return at + count;
    }
    if (this.#whole === null && count === this.#left) {
      this.#left = 0;
      this.#sink.frame(this.#type, this.#channel, bytes);
      return at + count;
    }
    this.#whole ??= Buffer.allocUnsafe(this.#left);
    bytes.copy(this.#whole, this.#whole.length - this.#left);
    this.#left -= count;
    if (this.#left === 0) {
      const whole = this.#whole;
      this.#whole = null;
      this.#sink.frame(this.#type, this.#channel, whole);
    }
    return at + count;
  }
}
