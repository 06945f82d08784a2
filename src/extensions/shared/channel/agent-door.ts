/**
 * A door: a socket of the host that only the agent of one sandbox can call.
 *
 * The socket lies in a directory `in` of the directory that is shown inside. The agent opens `in` as the first process of the
 * sandbox, before any program can run there, and connects through that descriptor from then on. With the first call, and before
 * it is answered, the host moves `in` out of the shown directory: no path inside leads to the socket any more. Only the agent has
 * the moved directory open, and the kernel protects its memory and descriptors from programs of the same user (it is not
 * dumpable), so a later call is the agent's too, also after a restart of the server.
 *
 * `makeReachable` moves the directory back, for the agent of a sandbox that is about to start.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';

const SOCKET = 'h.sock';
const INNER = 'in';
/** Path of the socket, from the directory that is shown inside. */
export const DOOR_SOCKET = `${INNER}/${SOCKET}`;
/** Suffix of the directory, beside the shown one, that holds `in` from the first call on. */
const HELD = '.held';
/** The agent keeps one connection waiting; one more may be of an agent that has just ended. */
const MAX_WAITING = 2;
const MAX_QUEUED = 8;
/** Most `take` calls that wait: each is a request of a client. */
const MAX_WANTED = 4096;
/** An agent calls once for each session; more calls in a row close the socket for a while. */
const MAX_CALLS = 64;
const CALLS_MS = 1_000;

interface DoorOptions {
  /** Backend named in errors. */
  readonly backend: string;
  /** The only user who may connect; without it the mode of the socket allows every user. */
  readonly owner?: number;
  /**
   * Whether the sandbox runs on the kernel of this machine. The file server of another kernel (gVisor) finds the socket by its
   * path each time, and would lose it: there the directory is not moved, and only `owner` restricts callers.
   */
  readonly sharedKernel: boolean;
}

/** Removes every file of a door of this name. */
export function removeDoor(base: string, name: string): void {
  for (const path of [join(base, name), join(base, name + HELD)])
    rmSync(path, { recursive: true, force: true });
}

/** Returns the names of all doors below a directory. */
export function doorsIn(base: string): Set<string> {
  try {
    return new Set(
      readdirSync(base).map((name) => (name.endsWith(HELD) ? name.slice(0, -HELD.length) : name)),
    );
  } catch {
    return new Set();
  }
}

export class AgentDoor {
  /** The directory that is shown inside. */
  readonly directory: string;
  readonly #held: string;
  readonly #base: string;
  readonly #name: string;
  readonly #options: DoorOptions;
  readonly #waiting: Socket[] = [];
  readonly #wanted: ((socket: Socket) => void)[] = [];
  #server: Server | null = null;
  #calls = 0;
  #countedSince = 0;
  #pause: NodeJS.Timeout | null = null;
  #closed = false;

  private constructor(base: string, name: string, options: DoorOptions) {
    this.#base = base;
    this.#name = name;
    this.directory = join(base, name);
    this.#held = join(base, name + HELD);
    this.#options = options;
  }

  /** Opens a door. `base` must be closed to other users; programs inside can read the directory itself. */
  static async open(base: string, name: string, options: DoorOptions): Promise<AgentDoor> {
    const door = new AgentDoor(base, name, options);
    mkdirSync(base, { recursive: true, mode: 0o700 });
    mkdirSync(door.directory, { recursive: true });
    chmodSync(door.directory, 0o755);
    await door.#listen();
    return door;
  }

  /** Whether a connection of the agent waits to be taken. */
  get hasCaller(): boolean {
    return this.#waiting.some((socket) => !socket.destroyed);
  }

  /**
   * Lets the first process of a sandbox find the socket by its path. Only for a sandbox without a running program, which would
   * find the socket as well.
   */
  makeReachable(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy();
    if (!existsSync(this.#held)) return;
    const inner = join(this.directory, INNER);
    rmSync(inner, { recursive: true, force: true });
    renameSync(this.#held, inner);
  }

  /** Resolves with a connection of the agent, as soon as there is one. */
  async take(signal: AbortSignal, withinMs: number): Promise<Socket> {
    const { backend } = this.#options;
    for (let socket = this.#waiting.shift(); socket !== undefined; socket = this.#waiting.shift()) {
      if (!socket.destroyed) return socket.ref();
    }
    if (this.#closed) throw new SandboxerError('SBX_BACKEND_LOST', 'It has ended.', { backend });
    if (this.#wanted.length >= MAX_WANTED) {
      throw new SandboxerError(
        'SBX_EXTENSION_FAILED',
        'Too many sessions wait for the agent of the sandbox.',
        {
          backend,
        },
      );
    }
    const called = Promise.withResolvers<Socket>();
    const give = (socket: Socket) => called.resolve(socket);
    this.#wanted.push(give);
    const fail = (code: 'SBX_TIMEOUT' | 'SBX_CANCELLED', detail: string) =>
      called.reject(new SandboxerError(code, detail, { backend, creation: 'maybe_created' }));
    const timer = setTimeout(
      () => fail('SBX_TIMEOUT', `The agent inside has not called within ${withinMs} ms.`),
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

  /** Stops taking calls; the directories stay for the next server. */
  close(): void {
    this.#closed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#server?.close();
    this.#server = null;
    for (const socket of this.#waiting.splice(0)) socket.destroy();
  }

  remove(): void {
    this.close();
    removeDoor(this.#base, this.#name);
  }

  async #listen(): Promise<void> {
    const { owner } = this.#options;
    const place = existsSync(this.#held) ? this.#held : join(this.directory, INNER);
    mkdirSync(place, { recursive: true });
    chmodSync(place, 0o755);
    // Binds through the open directory: its path may be longer than the address of a socket, and it may be moved meanwhile.
    const fd = openSync(place, 'r');
    const path = `/proc/self/fd/${fd}/${SOCKET}`;
    const server = createServer((socket) => this.#called(socket));
    server.unref();
    this.#server = server;
    try {
      rmSync(path, { force: true });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen({ path, backlog: MAX_QUEUED }, resolve);
      });
      chmodSync(path, owner === undefined ? 0o666 : 0o600);
      if (owner !== undefined) chownSync(path, owner, owner);
    } finally {
      closeSync(fd);
    }
  }

  #called(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#isFlooded()) this.#pauseListening();
    if (!this.#hold()) {
      socket.destroy();
      return;
    }
    const wanted = this.#wanted.shift();
    if (wanted !== undefined) {
      wanted(socket);
      return;
    }
    // Refuses the newest: a connection that waits is not pushed out by later callers.
    if (this.#waiting.length >= MAX_WAITING) {
      socket.destroy();
      return;
    }
    this.#waiting.push(socket);
    socket.unref();
    socket.on('close', () => {
      const at = this.#waiting.indexOf(socket);
      if (at >= 0) this.#waiting.splice(at, 1);
    });
  }

  /** Moves the directory before the first call is answered: until then no program has run inside. */
  #hold(): boolean {
    if (!this.#options.sharedKernel) return true;
    const inner = join(this.directory, INNER);
    try {
      if (existsSync(inner)) renameSync(inner, this.#held);
      return true;
    } catch {
      return false;
    }
  }

  #isFlooded(): boolean {
    const now = performance.now();
    if (now - this.#countedSince > CALLS_MS) {
      this.#countedSince = now;
      this.#calls = 0;
    }
    this.#calls += 1;
    return this.#calls > MAX_CALLS;
  }

  /** Closes the listening socket: the kernel then refuses callers, at no cost for the server. */
  #pauseListening(): void {
    if (this.#pause !== null || this.#closed) return;
    this.#server?.close();
    this.#server = null;
    this.#pause = setTimeout(() => {
      this.#pause = null;
      if (!this.#closed) this.#listen().catch(() => this.#pauseListening());
    }, CALLS_MS).unref();
  }
}
