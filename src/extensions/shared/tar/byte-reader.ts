import { SandboxerError } from '../../../contract/errors/errors.ts';

function cutOff(): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', 'The archive is cut off.');
}

/** Takes counted bytes from the chunks of an archive, holding at most one chunk more than was asked for. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** `null` at the end of the stream; throws `SBX_PATH_REFUSED` when it ends in the middle. */
  async exactly(count: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let missing = count;
    while (missing > 0) {
      const part = await this.#some(missing);
      if (part === null) {
        if (missing === count) return null;
        throw cutOff();
      }
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }

  /** The next `count` bytes as they come, and how many of them were not read yet. */
  take(count: number): { bytes(): AsyncGenerator<Uint8Array>; left(): number } {
    let left = count;
    const some = (most: number) => this.#some(most);
    async function* bytes(): AsyncGenerator<Uint8Array> {
      while (left > 0) {
        const part = await some(left);
        if (part === null) throw cutOff();
        left -= part.length;
        yield part;
      }
    }
    return { bytes, left: () => left };
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      const part = await this.#some(left);
      if (part === null) throw cutOff();
      left -= part.length;
    }
  }

  /** Reads to the end, so that whoever writes is not left hanging. */
  async drain(): Promise<void> {
    while ((await this.#some(Number.MAX_SAFE_INTEGER)) !== null);
  }

  async #some(most: number): Promise<Buffer | null> {
    while (this.#held.length === 0) {
      if (this.#ended) return null;
      const { value, done } = await this.#chunks.next();
      if (done === true) this.#ended = true;
      else this.#held = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const part = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(part.length);
    return part;
  }
}
