/** A socket that the agents inside call: each connection they open waits here until somebody wants one. */
import { chmodSync, chownSync, closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { SandboxerError } from '../../contract/errors.ts';

/** Its name in the directory that is shown inside. */
export const DOOR_SOCKET = 'h.sock';
/** An agent keeps one waiting; whoever opens more is not one. */
const MOST_WAITING = 4;

interface DoorOptions {
  /** Whose errors it tells. */
  readonly backend: string;
  /** The only one who may call; otherwise whoever is inside. */
  readonly owner?: number;
}

export class AgentDoor {
  readonly directory: string;
  readonly #backend: string;
  readonly #server: Server;
  readonly #waiting: Socket[] = [];
  readonly #wanted: ((socket: Socket) => void)[] = [];
  #closed = false;

  private constructor(directory: string, backend: string) {
    this.directory = directory;
    this.#backend = backend;
    this.#server = createServer((socket) => this.#called(socket));
    this.#server.unref();
  }

  /** `base` must be open to nobody else; the directory itself is read by whoever is inside. */
  static async open(base: string, name: string, { backend, owner }: DoorOptions): Promise<AgentDoor> {
    const door = new AgentDoor(join(base, name), backend);
    mkdirSync(base, { recursive: true, mode: 0o700 });
    mkdirSync(door.directory, { recursive: true });
    chmodSync(door.directory, 0o755);
    rmSync(join(door.directory, DOOR_SOCKET), { force: true });
    // Through the open directory: its path may be longer than the address of a socket.
    const fd = openSync(door.directory, 'r');
    const path = `/proc/self/fd/${fd}/${DOOR_SOCKET}`;
    try {
      await new Promise<void>((resolve, reject) => {
        door.#server.once('error', reject);
        door.#server.listen(path, resolve);
      });
      chmodSync(path, owner === undefined ? 0o666 : 0o600);
      if (owner !== undefined) chownSync(path, owner, owner);
    } finally {
      closeSync(fd);
    }
    return door;
  }

  get hasCaller(): boolean {
    return this.#waiting.some((socket) => !socket.destroyed);
  }

  /** A connection that an agent has opened, as soon as there is one. */
  async take(signal: AbortSignal, withinMs: number): Promise<Socket> {
    for (let socket = this.#waiting.shift(); socket !== undefined; socket = this.#waiting.shift()) {
      if (!socket.destroyed) return socket.ref();
    }
    if (this.#closed)
      throw new SandboxerError('SBX_BACKEND_LOST', 'It has ended.', { backend: this.#backend });
    const called = Promise.withResolvers<Socket>();
    const give = (socket: Socket) => called.resolve(socket);
    this.#wanted.push(give);
    const fail = (code: 'SBX_TIMEOUT' | 'SBX_CANCELLED', detail: string) =>
      called.reject(new SandboxerError(code, detail, { backend: this.#backend, creation: 'maybe_created' }));
    const timer = setTimeout(
      () => fail('SBX_TIMEOUT', `Nobody inside has called within ${withinMs} ms.`),
      withinMs,
    );
    const abort = () => fail('SBX_CANCELLED', 'It was given up before the agent called.');
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await called.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      const at = this.#wanted.indexOf(give);
      if (at >= 0) this.#wanted.splice(at, 1);
    }
  }

  /** Hears nobody any more; the directory stays for whoever listens next. */
  close(): void {
    this.#closed = true;
    this.#server.close();
    for (const socket of this.#waiting.splice(0)) socket.destroy();
  }

  remove(): void {
    this.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  #called(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const wanted = this.#wanted.shift();
    if (wanted !== undefined) {
      wanted(socket);
      return;
    }
    if (this.#waiting.length >= MOST_WAITING) this.#waiting.shift()?.destroy();
    this.#waiting.push(socket);
    socket.unref();
    socket.on('close', () => {
      const at = this.#waiting.indexOf(socket);
      if (at >= 0) this.#waiting.splice(at, 1);
    });
  }
}
