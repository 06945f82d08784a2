import { SandboxerError } from '../../contract/errors.ts';
import type { SandboxFiles, SandboxSession } from '../../core/session.ts';
import type { Channel } from '../shared/channel.ts';
import { BACKEND } from './failure.ts';

type Open = (service: string, signal?: AbortSignal) => Promise<Channel>;

/**
 * A session over the services of a stack. Programs and files are those of the default service; a port is that of the
 * service that offers it. A lost connection is opened again by whatever is asked for next.
 */
export class ComposeSession implements SandboxSession {
  readonly files: SandboxFiles;
  readonly #open: Open;
  readonly #service: string;
  readonly #ports: Readonly<Record<string, string>>;
  readonly #channels = new Map<string, Promise<Channel>>();
  #closed = false;

  constructor(first: Channel, service: string, ports: Readonly<Record<string, string>>, open: Open) {
    this.#open = open;
    this.#service = service;
    this.#ports = ports;
    this.#channels.set(service, Promise.resolve(first));
    this.files = this.#files();
  }

  spawn: SandboxSession['spawn'] = async (spec, options) =>
    await (await this.#session()).spawn(spec, options);
  attach: NonNullable<SandboxSession['attach']> = async (id, from, options) =>
    await must((await this.#session()).attach?.(id, from, options));
  processes: NonNullable<SandboxSession['processes']> = async (options) =>
    await must((await this.#session()).processes?.(options));
  dial: NonNullable<SandboxSession['dial']> = async (port, options) =>
    await must((await this.#session(this.#ports[String(port)])).dial?.(port, options));

  async close(): Promise<void> {
    this.#closed = true;
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) await channel.then(({ session }) => session.close()).catch(() => {});
  }

  async #session(service = this.#service): Promise<SandboxSession> {
    const known = this.#channels.get(service);
    if (known !== undefined) {
      const channel = await known.catch(() => null);
      if (channel !== null && (!channel.isLost || this.#closed)) return channel.session;
      if (this.#channels.get(service) === known) this.#channels.delete(service);
    }
    if (this.#closed) {
      throw new SandboxerError('SBX_EXTENSION_FAILED', 'The session was closed.', { backend: BACKEND });
    }
    const opening = this.#channels.get(service) ?? this.#open(service);
    this.#channels.set(service, opening);
    return (await opening).session;
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
