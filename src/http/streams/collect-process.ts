import { isUtf8 } from 'node:buffer';
import { setImmediate } from 'node:timers/promises';
import type { ExecResult } from '../../contract/sandboxes/exec.ts';
import type { Followed } from '../../control/use/exec-in-sandbox.ts';
import type { BufferLease } from '../bounds/buffer-budget.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { HttpServices } from '../services/http-services.ts';
import { detachWhenGone } from './stream-process.ts';

/** Collects one stream of output, up to a limit. The rest is read and thrown away, so that the program can go on. */
class Collected {
  readonly #chunks: Uint8Array[] = [];
  readonly #lease: BufferLease | null;
  #room: number;
  truncated = false;

  constructor(limit: number, lease: BufferLease | null) {
    this.#room = limit;
    this.#lease = lease;
  }

  add(data: Uint8Array): void {
    const kept = data.length > this.#room ? data.subarray(0, this.#room) : data;
    if (kept.length < data.length) this.truncated = true;
    if (kept.length === 0) return;
    // The program has done its work: an error would make the caller run it twice. The answer is marked as cut instead.
    if (this.#lease?.tryGrow(kept.length) === false) {
      this.truncated = true;
      this.#room = 0;
      return;
    }
    // A copy: the producer of the chunk may use its memory again.
    this.#chunks.push(Buffer.from(kept));
    this.#room -= kept.length;
  }

  /** Returns the bytes, cut between characters: half a character would turn text into something else. */
  bytes(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    if (!this.truncated) return bytes;
    let end = bytes.length;
    for (let back = 0; back < 3 && end > 0 && ((bytes[end - 1] as number) & 0xc0) === 0x80; back += 1)
      end -= 1;
    const whole = end > 0 && (bytes[end - 1] as number) >= 0xc0 ? bytes.subarray(0, end - 1) : bytes;
    return isUtf8(bytes) || !isUtf8(whole) ? bytes : whole;
  }
}

/** Divides by three, so that pieces of base64 are whole. */
const PIECE_BYTES = 192 * 1024;

/** Decodes the bytes in pieces, with other work in between. */
async function textOf(bytes: Buffer, encoding: 'utf8' | 'base64'): Promise<string> {
  if (bytes.length <= PIECE_BYTES) return bytes.toString(encoding);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let text = '';
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const piece = bytes.subarray(at, at + PIECE_BYTES);
    text += encoding === 'utf8' ? decoder.decode(piece, { stream: true }) : piece.toString(encoding);
    await setImmediate();
  }
  return text + decoder.decode();
}

/** Returns a process as one answer, when it has ended. */
export async function collectProcess(
  services: HttpServices,
  exchange: Exchange,
  { process, startedAt, explain }: Followed,
): Promise<ExecResult> {
  detachWhenGone(exchange, process);
  const { execOutputBytes } = services.limits;
  const out = new Collected(execOutputBytes, exchange.buffered);
  const err = new Collected(execOutputBytes, exchange.buffered);
  try {
    for await (const chunk of process.output) {
      if (chunk.stream === 'gap') {
        out.truncated = true;
        continue;
      }
      (chunk.stream === 'stderr' ? err : out).add(chunk.data);
      chunk.done?.();
    }
    const exit = await process.exit;
    const [stdout, stderr] = [out.bytes(), err.bytes()];
    const encoding = isUtf8(stdout) && isUtf8(stderr) ? 'utf8' : 'base64';
    return {
      process_id: process.id,
      exit,
      stdout: await textOf(stdout, encoding),
      stderr: await textOf(stderr, encoding),
      encoding,
      stdout_truncated: out.truncated,
      stderr_truncated: err.truncated,
      duration_ms: services.control.clock.now() - startedAt,
    };
  } catch (error) {
    throw exchange.signal.aborted ? exchange.signal.reason : await explain(error);
  }
}
