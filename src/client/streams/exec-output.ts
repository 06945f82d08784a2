import type { ExitStatus } from '../../contract/sandboxes/exec.ts';
import type { ExecChunk, OutputStream } from './frames.ts';

interface Kept {
  readonly parts: Buffer[];
  bytes: number;
  truncated: boolean;
}

const NOT_ENDED: ExitStatus = { code: -1, signal: null, timed_out: false, out_of_memory: false };

/** Output and exit of a program. A terminal's output counts as stdout. */
export class ExecOutput {
  processId = '';
  exit: ExitStatus = NOT_ENDED;
  durationMs = 0;
  /** Number of bytes that the server no longer had. */
  missingBytes = 0;
  readonly #keepBytes: number;
  readonly #out: Kept = { parts: [], bytes: 0, truncated: false };
  readonly #err: Kept = { parts: [], bytes: 0, truncated: false };

  constructor(keepBytes: number) {
    this.#keepBytes = keepBytes;
  }

  add(chunk: ExecChunk): void {
    if (chunk.type === 'started') this.processId = chunk.process_id;
    else if (chunk.type === 'gap') this.missingBytes += chunk.missing;
    else if (chunk.type === 'exit') {
      this.exit = chunk.exit;
      this.durationMs = chunk.duration_ms;
    } else this.#keep(chunk.type, chunk.data);
  }

  get stdoutBytes(): Buffer {
    return Buffer.concat(this.#out.parts);
  }

  get stderrBytes(): Buffer {
    return Buffer.concat(this.#err.parts);
  }

  get stdout(): string {
    return this.stdoutBytes.toString('utf8');
  }

  get stderr(): string {
    return this.stderrBytes.toString('utf8');
  }

  get truncated(): boolean {
    return this.#out.truncated || this.#err.truncated;
  }

  #keep(stream: OutputStream, data: Buffer): void {
    const kept = stream === 'stderr' ? this.#err : this.#out;
    const room = this.#keepBytes - kept.bytes;
    const part = data.length > room ? data.subarray(0, Math.max(0, room)) : data;
    if (part.length < data.length) kept.truncated = true;
    if (part.length === 0) return;
    kept.parts.push(part);
    kept.bytes += part.length;
  }
}
