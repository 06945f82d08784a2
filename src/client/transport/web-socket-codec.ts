/** RFC 6455 for a client: masked frames out, unmasked and possibly fragmented frames in. */
import { randomFillSync } from 'node:crypto';
import { SandboxerConnectionError } from './connection-error.ts';

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface WebSocketMessage {
  readonly opcode: number;
  readonly data: Buffer;
}

const FINAL = 0x80;
const RESERVED = 0x70;
const MASKED = 0x80;
const LONGEST_CONTROL = 125;
const LONGEST_MESSAGE = 64 * 1_048_576;

const maskPool = Buffer.alloc(8192);
let maskAt = maskPool.length;

function nextMask(): number {
  if (maskAt === maskPool.length) {
    randomFillSync(maskPool);
    maskAt = 0;
  }
  const mask = maskPool.readUInt32LE(maskAt);
  maskAt += 4;
  return mask;
}

/** Masks four bytes at a time where the machine allows it; the rest one by one. */
function maskInto(target: Buffer, at: number, payload: Uint8Array, mask: number): void {
  target.set(payload, at);
  const end = at + payload.length;
  const keys = [mask & 0xff, (mask >>> 8) & 0xff, (mask >>> 16) & 0xff, mask >>> 24];
  let index = 0;
  const misaligned = (target.byteOffset + at) % 4;
  const head = Math.min(payload.length, misaligned === 0 ? 0 : 4 - misaligned);
  for (; index < head; index += 1)
    target[at + index] = (target[at + index] as number) ^ (keys[index & 3] as number);
  const count = (payload.length - index) >> 2;
  if (count > 0) {
    const turn = (index & 3) * 8;
    const turned = turn === 0 ? mask : (mask >>> turn) | (mask << (32 - turn));
    const words = new Int32Array(target.buffer, target.byteOffset + at + index, count);
    for (let word = 0; word < count; word += 1) words[word] = (words[word] as number) ^ turned;
  }
  for (index += count * 4; at + index < end; index += 1) {
    target[at + index] = (target[at + index] as number) ^ (keys[index & 3] as number);
  }
}

export function encodeWebSocketFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const start = 2 + lengthBytes + 4;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = FINAL | opcode;
  frame[1] = MASKED | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2);
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = nextMask();
  frame.writeUInt32LE(mask, start - 4);
  maskInto(frame, start, payload, mask);
  return frame;
}

export function encodeClose(code: number, reason = ''): Buffer {
  const text = Buffer.from(reason).subarray(0, LONGEST_CONTROL - 2);
  const payload = Buffer.alloc(2 + text.length);
  payload.writeUInt16BE(code, 0);
  text.copy(payload, 2);
  return encodeWebSocketFrame(OPCODE.close, payload);
}

function damaged(what: string): SandboxerConnectionError {
  return new SandboxerConnectionError('protocol', `The WebSocket is damaged: ${what}.`, true);
}

/** Takes bytes as they arrive; returns whole messages and control frames. */
export class WebSocketDecoder {
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #fragments: Buffer[] = [];
  #fragmentBytes = 0;
  #fragmentOpcode = 0;

  decode(bytes: Buffer): WebSocketMessage[] {
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    const messages: WebSocketMessage[] = [];
    for (;;) {
      const message = this.#next();
      if (message === undefined) return messages;
      if (message !== null) messages.push(message);
    }
  }

  /** Returns the next message. `undefined`: more bytes are needed; `null`: a part of a message that goes on. */
  #next(): WebSocketMessage | null | undefined {
    const header = this.#peek(2);
    if (header === null) return undefined;
    const first = header[0] as number;
    const second = header[1] as number;
    if ((first & RESERVED) !== 0) throw damaged('an extension was not agreed on');
    if ((second & MASKED) !== 0) throw damaged('a server does not mask');
    const short = second & 0x7f;
    const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
    const head = this.#peek(2 + lengthBytes);
    if (head === null) return undefined;
    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
    const opcode = first & 0x0f;
    const final = (first & FINAL) !== 0;
    if (opcode >= 8 && (length > LONGEST_CONTROL || !final)) throw damaged('a control frame is too long');
    if (length + this.#fragmentBytes > LONGEST_MESSAGE) throw damaged('a message is too long');
    if (this.#pendingBytes < head.length + length) return undefined;
    this.#take(head.length);
    return this.#deliver(opcode, final, this.#take(length));
  }

  #deliver(opcode: number, final: boolean, data: Buffer): WebSocketMessage | null {
    if (opcode >= 8) return { opcode, data };
    if (opcode !== OPCODE.continuation) {
      if (this.#fragmentOpcode !== 0) throw damaged('a message begins inside another');
      if (final) return { opcode, data };
      this.#fragmentOpcode = opcode;
    } else if (this.#fragmentOpcode === 0) throw damaged('a message goes on that never began');
    this.#fragments.push(data);
    this.#fragmentBytes += data.length;
    if (!final) return null;
    const message = { opcode: this.#fragmentOpcode, data: Buffer.concat(this.#fragments) };
    this.#fragments = [];
    this.#fragmentBytes = 0;
    this.#fragmentOpcode = 0;
    return message;
  }

  #peek(count: number): Buffer | null {
    if (this.#pendingBytes < count) return null;
    const first = this.#pending[0] as Buffer;
    if (first.length >= count) return first.subarray(0, count);
    const parts: Buffer[] = [];
    for (let at = 0, have = 0; have < count; at += 1) {
      const part = this.#pending[at] as Buffer;
      parts.push(part);
      have += part.length;
    }
    return Buffer.concat(parts).subarray(0, count);
  }

  /** Takes bytes, without a copy when they lie in one piece. */
  #take(count: number): Buffer {
    this.#pendingBytes -= count;
    const first = this.#pending[0];
    if (first === undefined || count === 0) return Buffer.alloc(0);
    if (first.length > count) {
      this.#pending[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    if (first.length === count) {
      this.#pending.shift();
      return first;
    }
    const all = Buffer.concat(this.#pending);
    this.#pending = all.length > count ? [all.subarray(count)] : [];
    return all.subarray(0, count);
  }
}
