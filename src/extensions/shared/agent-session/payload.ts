import { SandboxerError } from '../../../contract/errors/errors.ts';
import { ProtocolViolation } from './protocol-violation.ts';

/** Builds a payload: little-endian numbers, and strings as length, bytes and a NUL. */
export class PayloadWriter {
  #bytes: Buffer = Buffer.allocUnsafe(256);
  #length = 0;

  u8(value: number): this {
    const at = this.#take(1);
    this.#bytes[at] = value;
    return this;
  }

  u16(value: number): this {
    const at = this.#take(2);
    this.#bytes.writeUInt16LE(value, at);
    return this;
  }

  u32(value: number): this {
    const at = this.#take(4);
    this.#bytes.writeUInt32LE(value, at);
    return this;
  }

  u64(value: number): this {
    const at = this.#take(8);
    this.#bytes.writeUInt32LE(value % 0x1_0000_0000, at);
    this.#bytes.writeUInt32LE(Math.floor(value / 0x1_0000_0000), at + 4);
    return this;
  }

  raw(text: string): this {
    const length = Buffer.byteLength(text, 'latin1');
    const at = this.#take(length);
    this.#bytes.write(text, at, length, 'latin1');
    return this;
  }

  string(text: string): this {
    if (text.includes('\0'))
      throw new SandboxerError('SBX_INVALID_REQUEST', 'A text cannot hold a NUL byte.');
    const length = Buffer.byteLength(text);
    this.u32(length);
    const at = this.#take(length + 1);
    this.#bytes.write(text, at, length, 'utf8');
    this.#bytes[at + length] = 0;
    return this;
  }

  strings(list: readonly string[]): this {
    this.u32(list.length);
    for (const text of list) this.string(text);
    return this;
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #take(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, at);
      this.#bytes = grown;
    }
    return at;
  }
}

/** Reads a payload of the agent. Throws a `ProtocolViolation` for a malformed one. */
export class PayloadReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length;
  }

  end(): void {
    if (!this.ended) throw new ProtocolViolation('a payload is longer than it should be');
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1));
  }

  u16(): number {
    return this.#bytes.readUInt16LE(this.#take(2));
  }

  u32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }

  i32(): number {
    return this.#bytes.readInt32LE(this.#take(4));
  }

  u64(): number {
    const at = this.#take(8);
    const value = this.#bytes.readUInt32LE(at + 4) * 0x1_0000_0000 + this.#bytes.readUInt32LE(at);
    if (!Number.isSafeInteger(value)) throw new ProtocolViolation('a number is too large');
    return value;
  }

  /** Reads a string. Names inside may have any bytes: those that are not UTF-8 become U+FFFD. */
  string(maxBytes: number): string {
    const length = this.u32();
    if (length > maxBytes) throw new ProtocolViolation('a text is too long');
    const at = this.#take(length + 1);
    const end = at + length;
    if (this.#bytes[end] !== 0) throw new ProtocolViolation('a text does not end');
    const nul = this.#bytes.indexOf(0, at);
    if (nul !== end) throw new ProtocolViolation('a text holds a NUL byte');
    return this.#bytes.toString('utf8', at, end);
  }

  raw(length: number): string {
    const at = this.#take(length);
    return this.#bytes.toString('latin1', at, at + length);
  }

  #take(count: number): number {
    const at = this.#at;
    if (this.#bytes.length - at < count) throw new ProtocolViolation('a payload is too short');
    this.#at = at + count;
    return at;
  }
}
