import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { FileChange } from '../../../contract/sandboxes/files.ts';
import type { SandboxFiles, SandboxSession } from '../../../core/ports/session.ts';
import type { Channel } from '../../shared/channel/channel.ts';
import type { UseGate } from './use-gate.ts';

type Open = (signal?: AbortSignal) => Promise<Channel>;

/**
 * Session that finds its sandbox again: a snapshot may end the agent of an idle one and start it anew on the same path, and a
 * connection can break. A call under way at the break fails as lost; the next call uses a new connection.
 */
export class LocalSession implements SandboxSession {
  readonly files: SandboxFiles;
  readonly #open: Open;
  readonly #gate: UseGate;
  #current: Channel;
  #again: Promise<Channel> | null = null;
  #closed = false;

  constructor(first: Channel, open: Open, gate: UseGate) {
    this.#current = first;
    this.#open = open;
    this.#gate = gate;
    this.files = this.#files();
  }

  spawn: SandboxSession['spawn'] = (spec, options) =>
    this.#held(
      (session) => session.spawn(spec, options),
      (process, leave) => {
        process.exit.then(leave, leave);
        return process;
      },
    );

  attach: NonNullable<SandboxSession['attach']> = (id, from, options) =>
    this.#held(
      (session) => must(session.attach?.(id, from, options)),
      (process, leave) => {
        process.exit.then(leave, leave);
        return process;
      },
    );

  processes: NonNullable<SandboxSession['processes']> = (options) =>
    this.#held((session) => must(session.processes?.(options)));

  dial: NonNullable<SandboxSession['dial']> = (port, options) =>
    this.#held(
      (session) => must(session.dial?.(port, options)),
      (connection, leave) => ({
        readable: thenLeave(connection.readable, leave),
        write: (data) => connection.write(data),
        end: () => connection.end(),
        destroy: () => {
          leave();
          connection.destroy();
        },
      }),
    );

  async close(): Promise<void> {
    this.#closed = true;
    await this.#current.session.close();
  }

  /** Runs a call and counts as a use until its answer, or as long as `keep` runs. */
  async #held<T>(
    request: (session: SandboxSession) => Promise<T>,
    keep?: (answer: T, leave: () => void) => T,
  ): Promise<T> {
    const leave = await this.#gate.enter();
    try {
      const answer = await request(await this.#session());
      if (keep !== undefined) return keep(answer, leave);
      leave();
      return answer;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #session(): Promise<SandboxSession> {
    if (!this.#current.isLost || this.#closed) return this.#current.session;
    this.#again ??= this.#open()
      .then((channel) => {
        this.#current = channel;
        return channel;
      })
      .finally(() => {
        this.#again = null;
      });
    return (await this.#again).session;
  }

  #files(): SandboxFiles {
    return {
      stat: (...args) => this.#held(({ files }) => must(files).stat(...args)),
      list: (...args) => this.#held(({ files }) => must(files).list(...args)),
      read: (...args) =>
        this.#held(
          ({ files }) => must(files).read(...args),
          ({ size, body }, leave) => ({ size, body: thenLeave(body, leave) }),
        ),
      write: (...args) => this.#held(({ files }) => must(files).write(...args)),
      mkdir: (...args) => this.#held(({ files }) => must(files).mkdir(...args)),
      move: (...args) => this.#held(({ files }) => must(files).move(...args)),
      remove: (...args) => this.#held(({ files }) => must(files).remove(...args)),
      upload: (...args) => this.#held(({ files }) => must(files).upload(...args)),
      download: (...args) => this.#held(({ files }) => must(files).download(...args), thenLeave<Uint8Array>),
      watch: (...args) =>
        this.#held(({ files }) => must(must(files).watch?.(...args)), thenLeave<FileChange>),
    };
  }
}

async function* thenLeave<T>(items: AsyncIterable<T>, leave: () => void): AsyncGenerator<T> {
  try {
    yield* items;
  } finally {
    leave();
  }
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new SandboxerError('SBX_UNSUPPORTED', 'The channel does not offer this.');
  return value;
}
