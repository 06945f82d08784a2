export interface LoggedChunk {
  readonly stream: 'stdout' | 'stderr';
  readonly offset: number;
  readonly data: Buffer;
}

/** The most recent output of a process, bounded. Offsets count all output ever written. */
export class OutputLog {
  readonly #limit: number;
  #chunks: LoggedChunk[] = [];
  #held = 0;
  #end = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get end(): number {
    return this.#end;
  }

  append(stream: LoggedChunk['stream'], data: Buffer): LoggedChunk {
    const chunk = { stream, offset: this.#end, data };
    this.#end += data.length;
    if (this.#limit === 0) return chunk;
    this.#chunks.push(chunk);
    this.#held += data.length;
    let surplus = 0;
    while (this.#held > this.#limit && surplus < this.#chunks.length - 1) {
      this.#held -= this.#chunks[surplus]?.data.length ?? 0;
      surplus += 1;
    }
    if (surplus > 0) this.#chunks = this.#chunks.slice(surplus);
    return chunk;
  }

  /** Returns the kept output from `offset` on, and how many bytes before it are lost. */
  from(offset: number): { missing: number; chunks: LoggedChunk[] } {
    const start = this.#chunks[0]?.offset ?? this.#end;
    const chunks = this.#chunks
      .filter((chunk) => chunk.offset + chunk.data.length > offset)
      .map((chunk) => {
        const cut = Math.max(0, offset - chunk.offset);
        return cut === 0 ? chunk : { ...chunk, offset, data: chunk.data.subarray(cut) };
      });
    return { missing: Math.max(0, Math.min(start, this.#end) - offset), chunks };
  }
}
