import { SandboxerError } from '../../contract/errors.ts';
import type { SandboxFiles, SandboxSession } from '../../core/session.ts';

/** A session that knows whether its connection still stands. */
export interface Channel {
  readonly session: SandboxSession;
  readonly isLost: boolean;
}

type Open = (signal?: AbortSignal) => Promise<Channel>;

/**
 * A session that finds its sandbox again: a snapshot may end the agent of an idle one and start it anew on the same path,
 * and a connection can break. What was under way is lost and says so; what is asked for next goes over a new one.
 */
export class LocalSession implements SandboxSession {
  readonly files: SandboxFiles;
  readonly #open: Open;
  #current: Channel;
  #again: Promise<Channel> | null = null;
  #closed = false;

  constructor(first: Channel, open: Open) {
    this.#current = first;
    this.#open = open;
    this.files = this.#files();
  }

  spawn: SandboxSession['spawn'] = async (spec, options) =>
    await (await this.#session()).spawn(spec, options);
  attach: NonNullable<SandboxSession['attach']> = async (id, from, options) =>
    await must((await this.#session()).attach?.(id, from, options));
  processes: NonNullable<SandboxSession['processes']> = async (options) =>
    await must((await this.#session()).processes?.(options));
  dial: NonNullable<SandboxSession['dial']> = async (port, options) =>
    await must((await this.#session()).dial?.(port, options));

  async close(): Promise<void> {
    this.#closed = true;
    await this.#current.session.close();
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
    const files = async () => must((await this.#session()).files);
    const watch = async function* (
      ...args: Parameters<NonNullable<SandboxFiles['watch']>>
    ): AsyncGenerator<Awaited<ReturnType<AsyncIterator<never>['next']>>['value']> {
      yield* must((await files()).watch?.(...args));
    };
    return {
      stat: async (...args) => await (await files()).stat(...args),
      list: async (...args) => await (await files()).list(...args),
      read: async (...args) => await (await files()).read(...args),
      write: async (...args) => await (await files()).write(...args),
      mkdir: async (...args) => await (await files()).mkdir(...args),
      move: async (...args) => await (await files()).move(...args),
      remove: async (...args) => await (await files()).remove(...args),
      upload: async (...args) => await (await files()).upload(...args),
      download: async (...args) => await (await files()).download(...args),
      watch,
    };
  }
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new SandboxerError('SBX_UNSUPPORTED', 'The channel does not offer this.');
  return value;
}
