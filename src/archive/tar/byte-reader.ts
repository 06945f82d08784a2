/** Takes counted bytes from a stream that comes in arbitrary pieces, holding at most one piece beyond the requested bytes. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #cutOff: () => Error;
  #piece: Buffer = Buffer.alloc(0);
  #ended = false;

  /** `cutOff` makes the error for a stream that ends too early. */
  constructor(source: AsyncIterable<Uint8Array>, cutOff: () => Error) {
    this.#source = source[Symbol.asyncIterator]();
    this.#cutOff = cutOff;
  }

  /** Returns the next bytes without a copy: at least one, at most `most`. */
  async some(most: number): Promise<Buffer> {
    const part = await this.#next(most);
    if (part === null) throw this.#cutOff();
    return part;
  }

  async exactly(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = count; left > 0; ) {
      const part = await this.some(left);
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.some(left)).length;
  }

  /** Reads to the end, so that the writer is not blocked. */
  async drain(): Promise<void> {
    while ((await this.#next(Number.MAX_SAFE_INTEGER)) !== null);
  }

  /** Closes the source. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #next(most: number): Promise<Buffer | null> {
    while (this.#piece.length === 0) {
      if (this.#ended) return null;
      const { value, done } = await this.#source.next();
      if (done) this.#ended = true;
      else this.#piece = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const part = this.#piece.subarray(0, most);
    this.#piece = this.#piece.subarray(part.length);
    return part;
  }
}
