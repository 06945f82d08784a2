import { constants } from 'node:os';
import { posix } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ExitStatus, Signal } from '../../contract/sandboxes/exec.ts';
import type { OutputChunk, SandboxProcess, SpawnSpec } from '../../core/ports/session.ts';
import type { FileTree } from './file-tree.ts';

type Sink = (stream: 'stdout' | 'stderr', data: Uint8Array | string) => Promise<void>;

interface Running {
  readonly args: readonly string[];
  readonly read: (path: string) => Buffer;
  readonly input: AsyncIterable<Uint8Array>;
  readonly out: Sink;
  /** Resolves after `ms`, or never when the program is killed first. */
  readonly pause: (ms: number) => Promise<void>;
}

/** The programs by the last part of their path. Each returns its exit code. */
const PROGRAMS: Readonly<Record<string, (running: Running) => Promise<number>>> = {
  true: async () => 0,
  false: async () => 1,
  echo: async ({ args, out }) => {
    await out('stdout', `${args.join(' ')}\n`);
    return 0;
  },
  cat: async ({ args, read, input, out }) => {
    if (args.length === 0) for await (const chunk of input) await out('stdout', chunk);
    for (const path of args) await out('stdout', read(path));
    return 0;
  },
  sleep: async ({ args, pause }) => {
    await pause(Number(args[0]) * 1000);
    return 0;
  },
  sh: async ({ args, out, pause }) => {
    const script = args[0] === '-c' ? (args[1] ?? '') : '';
    const [, word, number] = /^(exit|sleep) (\d{1,3}(?:\.\d)?)$/.exec(script) ?? [];
    if (word === 'exit') return Number(number) & 0xff;
    if (word === 'sleep') {
      await pause(Number(number) * 1000);
      return 0;
    }
    await out('stderr', 'sh: only `exit N` and `sleep N` are known here\n');
    return 2;
  },
};

/** Passes one chunk at a time: the writer goes on when the reader has taken it. */
class Pipe<Item> implements AsyncIterable<Item> {
  #waiting: PromiseWithResolvers<IteratorResult<Item>> | null = null;
  #offered: { item: Item; taken: () => void } | null = null;
  #ended = false;

  async put(item: Item): Promise<void> {
    if (this.#ended) return;
    const waiting = this.#waiting;
    if (waiting !== null) {
      this.#waiting = null;
      waiting.resolve({ value: item, done: false });
      return;
    }
    await new Promise<void>((taken) => {
      this.#offered = { item, taken };
    });
  }

  end(): void {
    this.#ended = true;
    this.#waiting?.resolve({ value: undefined, done: true });
    this.#waiting = null;
  }

  /** Drops all further chunks: there is no reader any more. */
  drop(): void {
    this.end();
    this.#offered?.taken();
    this.#offered = null;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    return { next: () => this.#next() };
  }

  #next(): Promise<IteratorResult<Item>> {
    const offered = this.#offered;
    if (offered !== null) {
      this.#offered = null;
      offered.taken();
      return Promise.resolve({ value: offered.item, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }
}

const ENDING: ReadonlySet<Signal> = new Set([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGTERM',
  'SIGUSR1',
  'SIGUSR2',
]);

export class MemoryProcess implements SandboxProcess {
  readonly id: string;
  readonly output: AsyncIterable<OutputChunk>;
  readonly exit: Promise<ExitStatus>;
  readonly #exited = Promise.withResolvers<ExitStatus>();
  readonly #output = new Pipe<OutputChunk>();
  readonly #input = new Pipe<Uint8Array>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #frozen: PromiseWithResolvers<void> | null = null;
  #offset = 0;
  #ended = false;

  constructor(id: string, spec: SpawnSpec, tree: FileTree) {
    this.id = id;
    this.output = this.#output;
    this.exit = this.#exited.promise;
    if (!spec.stdin) this.#input.end();
    const { timeoutSeconds } = spec;
    if (timeoutSeconds !== null) this.#after(timeoutSeconds * 1000, () => this.#end(137, 'SIGKILL', true));
    void this.#run(spec, tree);
  }

  async write(data: Uint8Array): Promise<void> {
    if (!this.#ended) await this.#input.put(Buffer.from(data));
  }

  async endInput(): Promise<void> {
    this.#input.end();
  }

  async kill(signal: Signal): Promise<void> {
    if (ENDING.has(signal)) this.#end(128 + constants.signals[signal], signal, false);
  }

  freeze(): void {
    this.#frozen ??= Promise.withResolvers();
  }

  thaw(): void {
    this.#frozen?.resolve();
    this.#frozen = null;
  }

  async resize(): Promise<void> {
    throw new SandboxerError('SBX_UNSUPPORTED', 'There are no terminals here.');
  }

  async detach(): Promise<void> {
    this.#output.drop();
    this.#end(137, 'SIGKILL', false);
  }

  async #run(spec: SpawnSpec, tree: FileTree): Promise<void> {
    const [program = '', ...args] = spec.argv;
    const known = /^(?:(?:\/usr)?\/bin\/)?([a-z]+)$/.exec(program)?.[1] ?? '';
    const run = Object.hasOwn(PROGRAMS, known) ? PROGRAMS[known] : undefined;
    const out: Sink = (stream, data) => this.#put(stream, Buffer.from(data));
    const pause = async (ms: number) => {
      await new Promise<void>((resolve) => this.#after(ms, resolve));
      await this.#frozen?.promise;
    };
    const read = (path: string) => tree.read(posix.resolve('/', spec.cwd ?? '/', path));
    if (run === undefined) {
      await out('stderr', `${program}: not found\n`);
      return this.#end(127, null, false);
    }
    try {
      this.#end(await run({ args, read, input: this.#input, out, pause }), null, false);
    } catch (error) {
      await out('stderr', `${program}: ${error instanceof Error ? error.message : 'failed'}\n`);
      this.#end(1, null, false);
    }
  }

  async #put(stream: 'stdout' | 'stderr', data: Buffer): Promise<void> {
    await this.#frozen?.promise;
    if (this.#ended || data.length === 0) return;
    const offset = this.#offset;
    this.#offset += data.length;
    await this.#output.put({ stream, offset, data });
  }

  #after(ms: number, then: () => void): void {
    const timer = setTimeout(then, Math.min(ms, 2 ** 31 - 1));
    this.#timers.add(timer);
  }

  #end(code: number, signal: string | null, timedOut: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.thaw();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#input.drop();
    this.#output.end();
    this.#exited.resolve({ code, signal, timed_out: timedOut, out_of_memory: false });
  }
}
