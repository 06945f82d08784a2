import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { ExitStatus, ProcessInfo, Signal } from '../../../contract/sandboxes/exec.ts';
import { drained } from './drained.ts';
import type { LoggedChunk } from './output-log.ts';
import { OutputLog } from './output-log.ts';
import type { TreeSelector } from './process-tree.ts';
import { eradicateTree, signalTree } from './process-tree.ts';

/** A reader of the output. `false` from `deliver` stops the program’s output until `ready` is called. */
export interface Reader {
  deliver(chunk: LoggedChunk): boolean;
  exited(status: ExitStatus): void;
}

export interface ManagedProcessSpec {
  readonly id: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly marker: string;
  readonly timeoutSeconds: number | null;
  readonly stdin: boolean;
  readonly background: boolean;
}

const KEPT_BYTES = 1_048_576;
/** Wait after the end of the program for output that a daemon may still hold open. */
const QUIET_MS = 60;

function statusOf(code: number | null, signal: NodeJS.Signals | null, timedOut: boolean): ExitStatus {
  const number = signal === null ? (code ?? 255) : 128 + constants.signals[signal];
  return { code: number, signal, timed_out: timedOut, out_of_memory: false };
}

export class ManagedProcess {
  readonly id: string;
  readonly background: boolean;
  readonly #spec: ManagedProcessSpec;
  readonly #child: ChildProcess;
  readonly #log: OutputLog;
  readonly #readers = new Set<Reader>();
  readonly #blocked = new Set<Reader>();
  readonly #startedAt = new Date();
  #endedAt: Date | null = null;
  #lastOutputAt = 0;
  #timedOut = false;
  #status: ExitStatus | null = null;

  constructor(spec: ManagedProcessSpec) {
    this.id = spec.id;
    this.background = spec.background;
    this.#spec = spec;
    this.#log = new OutputLog(spec.background ? KEPT_BYTES : 0);
    const [program = '', ...args] = spec.argv;
    this.#child = spawn(program, args, {
      cwd: spec.directory,
      env: spec.env,
      detached: true,
      stdio: [spec.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
    this.#child.stdin?.on('error', () => {});
    for (const stream of ['stdout', 'stderr'] as const) {
      this.#child[stream]?.on('data', (data: Buffer) => this.#output(stream, data));
    }
    this.#follow();
  }

  get status(): ExitStatus | null {
    return this.#status;
  }

  get info(): ProcessInfo {
    return {
      process_id: this.id,
      command: [...this.#spec.argv],
      started_at: this.#startedAt.toISOString(),
      running: this.#status === null,
      exit: this.#status,
      tty: false,
      background: this.background,
      stdin_open: this.#status === null && this.#child.stdin?.writable === true,
      ...(this.#endedAt && { ended_at: this.#endedAt.toISOString() }),
    };
  }

  /** Adds a reader from now on, and returns the kept output from `from` on. */
  join(reader: Reader, from: number): { missing: number; chunks: LoggedChunk[] } {
    if (this.#status === null) this.#readers.add(reader);
    return this.#log.from(from);
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader);
    this.ready(reader);
  }

  ready(reader: Reader): void {
    if (this.#blocked.delete(reader) && this.#blocked.size === 0) {
      this.#child.stdout?.resume();
      this.#child.stderr?.resume();
    }
  }

  async write(data: Buffer): Promise<void> {
    const input = this.#child.stdin;
    if (input !== null && !input.destroyed && !input.write(data)) await drained(input);
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  signal(signal: Signal): void {
    if (this.#status === null) signalTree(this.#tree(), signal);
  }

  async kill(): Promise<void> {
    await eradicateTree(this.#tree());
  }

  #tree(): TreeSelector {
    const { pid, exitCode, signalCode } = this.#child;
    const living = pid !== undefined && exitCode === null && signalCode === null;
    return { marker: this.#spec.marker, ...(living ? { leader: pid } : {}) };
  }

  #follow(): void {
    const child = this.#child;
    const { timeoutSeconds } = this.#spec;
    const timer =
      timeoutSeconds === null
        ? undefined
        : setTimeout(() => {
            this.#timedOut = true;
            void this.kill();
          }, timeoutSeconds * 1000);
    child.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      if (child.pid !== undefined) return;
      const found = error.code !== 'ENOENT';
      const why = found ? 'cannot be executed' : 'not found';
      this.#output('stderr', Buffer.from(`${this.#spec.argv[0]}: ${why}\n`));
      this.#finish(statusOf(found ? 126 : 127, null, false));
    });
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      const status = statusOf(code, signal, this.#timedOut);
      child.once('close', () => this.#finish(status));
      this.#finishWhenQuiet(status);
    });
  }

  /** A daemon may keep the output open for ever: the program itself has ended. */
  #finishWhenQuiet(status: ExitStatus): void {
    this.#lastOutputAt = Math.max(this.#lastOutputAt, Date.now());
    const check = setInterval(() => {
      if (this.#status === null && (this.#blocked.size > 0 || Date.now() - this.#lastOutputAt < QUIET_MS))
        return;
      clearInterval(check);
      this.#finish(status);
    }, QUIET_MS / 3);
  }

  #output(stream: LoggedChunk['stream'], data: Buffer): void {
    this.#lastOutputAt = Date.now();
    if (this.#status !== null) return;
    const chunk = this.#log.append(stream, data);
    for (const reader of this.#readers) if (!reader.deliver(chunk)) this.#blocked.add(reader);
    if (this.#blocked.size === 0) return;
    this.#child.stdout?.pause();
    this.#child.stderr?.pause();
  }

  #finish(status: ExitStatus): void {
    if (this.#status !== null) return;
    this.#status = status;
    this.#endedAt = new Date();
    for (const reader of [...this.#readers]) reader.exited(status);
    this.#readers.clear();
  }
}
