import type { OutputChunk, ServiceLog } from '../../../core/ports/session.ts';
import type { RemoteProcess } from '../../shared/ssh/ssh-host.ts';
import { hostFailure } from './failure.ts';

const MOST_WAITING = 64;

/** Output of a command on the host as a log: a slow reader slows the command down. */
export class RemoteLog implements ServiceLog {
  readonly id: string;
  readonly output: AsyncIterable<OutputChunk>;
  readonly exit: ServiceLog['exit'];
  readonly #remote: RemoteProcess;
  readonly #waiting: OutputChunk[] = [];
  #offset = 0;
  #ended = false;
  #wake = () => {};

  constructor(id: string, remote: RemoteProcess) {
    this.id = id;
    this.#remote = remote;
    remote.process.stdout.on('data', (data: Buffer) => this.#take('stdout', data));
    remote.process.onErrorOutput((data) => this.#take('stderr', data));
    const closed = remote.exit.finally(() => {
      this.#ended = true;
      this.#wake();
    });
    this.exit = closed.then((code) => {
      if (code !== 0) throw hostFailure('The log could not be read', remote.process.stderr, 'created');
      return { code, signal: null, timed_out: false, out_of_memory: false };
    });
    this.exit.catch(() => {});
    this.output = this.#read();
  }

  async detach(): Promise<void> {
    this.#remote.kill();
  }

  #take(stream: 'stdout' | 'stderr', data: Buffer): void {
    this.#waiting.push({ stream, offset: this.#offset, data });
    this.#offset += data.length;
    if (this.#waiting.length >= MOST_WAITING) this.#remote.process.pause();
    this.#wake();
  }

  async *#read(): AsyncGenerator<OutputChunk> {
    for (;;) {
      const chunk = this.#waiting.shift();
      if (chunk !== undefined) {
        if (this.#waiting.length === 0) this.#remote.process.resume();
        yield chunk;
      } else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
