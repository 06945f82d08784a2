import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExitStatus, Signal, TerminalSize } from '../../../contract/sandboxes/exec.ts';
import type { OutputChunk, SandboxProcess } from '../../../core/ports/session.ts';
import { signalName } from '../../shared/agent-session/signal-numbers.ts';
import { failed, lost } from '../engine/engine-error.ts';
import { OutputFrames } from '../engine/exec-stream.ts';

const STDERR = 2;
const LARGEST_SIGNAL = 31;
/** Chunks that wait for their reader; beyond them the engine's stream is not read, and so the program waits. */
const MOST_WAITING = 8;
const KILL_TRIES = 40;

export interface ExecControl {
  /** Returns the exit code, as soon as the engine knows it. */
  exitCode(): Promise<number>;
  /** Signals the program; returns how many processes got the signal. */
  signal(signal: Signal): Promise<number>;
  resize(size: TerminalSize): Promise<void>;
}

interface ExecTerms {
  readonly tty: boolean;
  readonly timeoutSeconds: number | null;
  readonly control: ExecControl;
}

/** A program that the engine has started; it ends when the engine's stream does. */
export class ExecProcess implements SandboxProcess {
  readonly id: string;
  readonly exit: Promise<ExitStatus>;
  readonly #raw: Duplex;
  readonly #control: ExecControl;
  readonly #exited = Promise.withResolvers<ExitStatus>();
  readonly #pieces: Readable;
  #offset = 0;
  #over = false;
  #timedOut = false;

  constructor(id: string, raw: Duplex, { tty, timeoutSeconds, control }: ExecTerms) {
    this.id = id;
    this.#raw = raw;
    this.#control = control;
    this.exit = this.#exited.promise;
    this.exit.catch(() => {});
    this.#pieces = new Readable({
      objectMode: true,
      highWaterMark: MOST_WAITING,
      read: () => void raw.resume(),
    });
    this.#pieces.on('error', () => {});
    this.#follow(tty);
    if (timeoutSeconds === null) return;
    const timer = setTimeout(() => this.#late(), timeoutSeconds * 1000);
    void this.exit.catch(() => {}).then(() => clearTimeout(timer));
  }

  get output(): AsyncIterable<OutputChunk> {
    return this.#read();
  }

  async write(data: Uint8Array): Promise<void> {
    if (this.#raw.destroyed || this.#raw.writableEnded || this.#raw.write(data)) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#raw.off('drain', done).off('close', done);
        resolve();
      };
      this.#raw.on('drain', done).on('close', done);
    });
  }

  async endInput(): Promise<void> {
    if (!this.#raw.destroyed) this.#raw.end();
  }

  /** The engine reports a start before it has happened: a process that is not found yet is searched again. */
  async kill(signal: Signal): Promise<void> {
    for (let tries = 0; tries < KILL_TRIES && !this.#over; tries++) {
      if ((await this.#control.signal(signal)) > 0) return;
      await sleep(50);
    }
  }

  async resize(size: TerminalSize): Promise<void> {
    if (!this.#over) await this.#control.resize(size);
  }

  async detach(): Promise<void> {
    this.#raw.removeAllListeners('data').resume();
    if (!this.#over) await this.kill('SIGKILL').catch(() => {});
    this.drop();
  }

  /** Releases the process, whatever becomes of it. */
  drop(): void {
    this.#fail(lost('The process was detached.'));
  }

  #follow(tty: boolean): void {
    const raw = this.#raw;
    const frames = new OutputFrames();
    const give = (stream: OutputChunk['stream'], data: Buffer) => {
      if (data.length === 0) return;
      const offset = this.#offset;
      this.#offset += data.length;
      if (!this.#pieces.push({ stream, offset, data } satisfies OutputChunk)) raw.pause();
    };
    raw.on('data', (chunk: Buffer) => {
      try {
        if (tty) give('terminal', chunk);
        else
          for (const { stream, data } of frames.take(chunk))
            give(stream === STDERR ? 'stderr' : 'stdout', data);
      } catch (error) {
        this.#fail(error);
      }
    });
    raw.on('error', (error) => this.#fail(error));
    raw.once('end', () => void this.#finish());
    raw.once('close', () => void this.#finish());
  }

  async #finish(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    try {
      const code = await this.#control.exitCode();
      const signal = code - 128;
      this.#exited.resolve({
        code,
        signal: signal > 0 && signal <= LARGEST_SIGNAL ? signalName(signal) : null,
        timed_out: this.#timedOut,
        out_of_memory: false,
      });
      this.#pieces.push(null);
    } catch (error) {
      this.#fail(error);
    }
    this.#raw.destroy();
  }

  #late(): void {
    this.#timedOut = true;
    this.kill('SIGKILL').catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#over = true;
    const typed = failed(error);
    this.#exited.reject(typed);
    this.#pieces.destroy(typed);
    this.#raw.destroy();
  }

  /** Yields the output. A reader that stops lets the program go on: the rest of its output is discarded. */
  async *#read(): AsyncGenerator<OutputChunk> {
    try {
      for await (const piece of this.#pieces.iterator({ destroyOnReturn: false })) yield piece as OutputChunk;
    } finally {
      this.#pieces.resume();
    }
  }
}
