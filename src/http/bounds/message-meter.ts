const FINAL = 0x80;
const MASKED = 0x80;
const CONTROL = 0x08;

/** Returns the length of a frame's header, as far as its first two bytes determine it (RFC 6455, 5.2). */
function headerLength(second: number): number {
  const length = second & 0x7f;
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + ((second & MASKED) === 0 ? 0 : 4);
}

function payloadLength(header: Buffer): number {
  const length = (header[1] as number) & 0x7f;
  if (length === 126) return header.readUInt16BE(2);
  return length === 127 ? Number(header.readBigUInt64BE(2)) : length;
}

/**
 * Counts how much of an incomplete WebSocket message has arrived. The library reports such a message only at its end, so the
 * bytes of the connection are followed here, frame by frame.
 */
export class MessageMeter {
  readonly #header = Buffer.alloc(14);
  #headerBytes = 0;
  #payloadLeft = 0;
  #isControl = false;
  #isFinal = false;
  #inMessage = false;
  #held = 0;
  #messages = 0;

  /** The payload bytes of the incomplete message. */
  get held(): number {
    return this.#held;
  }

  /** Whether a frame or a message has begun that is not complete. */
  get isOpen(): boolean {
    return this.#inMessage || this.#headerBytes > 0;
  }

  /** Messages that were complete. */
  get messages(): number {
    return this.#messages;
  }

  feed(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#payloadLeft === 0) {
        this.#takeHeader(bytes[at] as number);
        at += 1;
      } else {
        const count = Math.min(this.#payloadLeft, bytes.length - at);
        at += count;
        this.#payloadLeft -= count;
        if (!this.#isControl) this.#held += count;
        if (this.#payloadLeft === 0) this.#endFrame();
      }
    }
  }

  #takeHeader(byte: number): void {
    this.#header[this.#headerBytes] = byte;
    this.#headerBytes += 1;
    if (this.#headerBytes < 2 || this.#headerBytes < headerLength(this.#header[1] as number)) return;
    const first = this.#header[0] as number;
    this.#isFinal = (first & FINAL) !== 0;
    this.#isControl = (first & CONTROL) !== 0;
    this.#payloadLeft = payloadLength(this.#header);
    if (!this.#isControl) this.#inMessage = true;
    if (this.#payloadLeft === 0) this.#endFrame();
  }

  #endFrame(): void {
    this.#headerBytes = 0;
    if (this.#isControl || !this.#isFinal) return;
    this.#inMessage = false;
    this.#held = 0;
    this.#messages += 1;
  }
}
