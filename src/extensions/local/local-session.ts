import { SandboxerError } from '../../contract/errors.ts';
import type { SandboxSession } from '../../core/session.ts';

type Open = (signal?: AbortSignal) => Promise<SandboxSession>;

/**
 * A session that finds its sandbox again: a snapshot may end the agent of an idle one and start it anew on the same
 * path. Only a call that the old agent cannot have begun is repeated.
 */
export class LocalSession implements SandboxSession {
  readonly #open: Open;
  #current: SandboxSession;
  #again: Promise<SandboxSession> | null = null;
  #closed = false;

  constructor(first: SandboxSession, open: Open) {
    this.#current = first;
    this.#open = open;
  }

  get files() {
    return this.#current.files;
  }

  spawn: SandboxSession['spawn'] = (spec, options) => this.#with((session) => session.spawn(spec, options));
  attach: NonNullable<SandboxSession['attach']> = (id, from, options) =>
    this.#with((session) => must(session.attach)(id, from, options));
  processes: NonNullable<SandboxSession['processes']> = (options) =>
    this.#with((session) => must(session.processes)(options));
  dial: NonNullable<SandboxSession['dial']> = (port, options) =>
    this.#with((session) => must(session.dial)(port, options));

  async close(): Promise<void> {
    this.#closed = true;
    await this.#current.close();
  }

  async #with<T>(work: (session: SandboxSession) => Promise<T>): Promise<T> {
    const session = this.#current;
    try {
      return await work(session);
    } catch (error) {
      if (this.#closed || !(error instanceof SandboxerError) || error.code !== 'SBX_BACKEND_LOST') throw error;
      this.#again ??= this.#open().finally(() => {
        this.#again = null;
      });
      this.#current = await this.#again.catch(() => {
        throw error;
      });
      return await work(this.#current);
    }
  }
}

function must<T extends object>(member: T | undefined): T {
  if (member === undefined) throw new SandboxerError('SBX_UNSUPPORTED', 'The channel does not offer this.');
  return member;
}
