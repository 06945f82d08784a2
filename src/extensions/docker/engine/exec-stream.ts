/** Streams of a program that the engine starts in a container. */
import { Duplex } from 'node:stream';
import type { EngineClient } from './engine-client.ts';
import { EngineUnreachable } from './engine-error.ts';
import { ExecCreated } from './engine-replies.ts';

const HEADER_BYTES = 8;
const MOST_BYTES = 16 * 1_048_576;
const STDOUT = 1;

export interface OutputPiece {
  /** 1: standard output, 2: standard error. */
  readonly stream: number;
  readonly data: Buffer;
}

/** Removes the engine's frames (`stream, 0, 0, 0, u32 length`) from the output. */
export class OutputFrames {
  #header = Buffer.alloc(0);
  #left = 0;
  #stream = 0;

  *take(chunk: Buffer): Generator<OutputPiece> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left === 0) {
        const wanted = HEADER_BYTES - this.#header.length;
        this.#header = Buffer.concat([this.#header, rest.subarray(0, wanted)]);
        rest = rest.subarray(wanted);
        if (this.#header.length < HEADER_BYTES) return;
        this.#stream = this.#header[0] ?? 0;
        this.#left = this.#header.readUInt32BE(4);
        this.#header = Buffer.alloc(0);
        if (this.#left > MOST_BYTES)
          throw new EngineUnreachable('garbled', 'The engine’s stream is not understood.');
        continue;
      }
      const data = rest.subarray(0, this.#left);
      rest = rest.subarray(data.length);
      this.#left -= data.length;
      yield { stream: this.#stream, data };
    }
  }
}

/** Passes on standard output only. */
function withoutFrames(raw: Duplex): Duplex {
  const frames = new OutputFrames();
  const stream = new Duplex({
    read: () => void raw.resume(),
    write: (chunk, _encoding, done) => {
      if (raw.write(chunk)) done();
      else raw.once('drain', () => done());
    },
    final: (done) => {
      raw.end();
      done();
    },
    destroy: (error, done) => {
      raw.destroy();
      done(error);
    },
  });
  raw.on('data', (chunk: Buffer) => {
    try {
      for (const piece of frames.take(chunk))
        if (piece.stream === STDOUT && !stream.push(piece.data)) raw.pause();
    } catch (error) {
      stream.destroy(error as Error);
    }
  });
  raw.on('end', () => stream.push(null));
  raw.on('error', (error) => stream.destroy(error));
  raw.on('close', () => stream.destroy());
  return stream;
}

export interface ExecRequest {
  readonly command: readonly string[];
  readonly env?: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
}

/** Starts the program; its output is framed unless it has a terminal. */
export async function startExec(
  client: EngineClient,
  container: string,
  { command, env = [], stdin, tty }: ExecRequest,
  signal?: AbortSignal,
): Promise<{ readonly id: string; readonly raw: Duplex }> {
  const options = signal === undefined ? {} : { signal };
  const { Id } = await client.call(ExecCreated, 'POST', `/containers/${encodeURIComponent(container)}/exec`, {
    ...options,
    body: { AttachStdin: stdin, AttachStdout: true, AttachStderr: true, Tty: tty, Cmd: command, Env: env },
  });
  const path = `/exec/${encodeURIComponent(Id)}/start`;
  return { id: Id, raw: await client.hijack(path, { Detach: false, Tty: tty }, options) };
}

export async function openExecStream(
  client: EngineClient,
  container: string,
  command: readonly string[],
  signal?: AbortSignal,
): Promise<Duplex> {
  const { raw } = await startExec(client, container, { command, stdin: true, tty: false }, signal);
  return withoutFrames(raw);
}
