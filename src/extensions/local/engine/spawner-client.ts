import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { withReachable } from './with-reachable.ts';

export type Fields = Readonly<Record<string, string>>;

/** Refusal of the spawner, with its code. */
export class SpawnerError extends Error {
  override readonly name = 'SpawnerError';
  readonly code: string;

  constructor(code: string, detail: string) {
    super(detail);
    this.code = code;
  }
}

interface Waiting {
  resolve(fields: Fields): void;
  reject(error: Error): void;
}

function connectUnix(path: string): Promise<Socket> {
  return withReachable(
    path,
    (reachable) =>
      new Promise((resolve, reject) => {
        const socket = connect(reachable);
        socket.once('error', reject);
        socket.once('connect', () => {
          socket.off('error', reject);
          resolve(socket);
        });
      }),
  );
}

function parse(parts: readonly string[]): Fields {
  return Object.fromEntries(
    parts.map((part) => {
      const at = part.indexOf('=');
      return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
    }),
  );
}

/** One connection to the spawner: many requests under way at once, answers in any order, events in between. */
export class SpawnerClient {
  readonly #socket: Socket;
  readonly #waiting = new Map<string, Waiting>();
  readonly #onEvent: (word: string, fields: Fields) => void;
  #rest = '';
  #last = 0;
  #closed = false;

  private constructor(socket: Socket, onEvent: (word: string, fields: Fields) => void) {
    this.#socket = socket;
    this.#onEvent = onEvent;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.#take(text));
    socket.on('error', () => {});
    socket.on('close', () => this.#lose());
  }

  static async open(path: string, onEvent: (word: string, fields: Fields) => void): Promise<SpawnerClient> {
    return new SpawnerClient(await connectUnix(path), onEvent);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends a request; the connection keeps the process alive only while a request is under way. */
  call(verb: string, fields: Readonly<Record<string, string | number>> = {}): Promise<Fields> {
    if (this.#closed) return Promise.reject(lost());
    const seq = String(++this.#last);
    const parts = Object.entries(fields).map(([key, value]) => `${key}=${value}`);
    if (parts.some((part) => /[\t\n]/.test(part))) {
      return Promise.reject(new SpawnerError('invalid', 'A path or name has a tab or line break in it.'));
    }
    if (this.#waiting.size === 0) this.#socket.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(seq, { resolve, reject });
      this.#socket.write(`${[seq, verb, ...parts].join('\t')}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    const [seq = '', word = '', ...parts] = line.split('\t');
    const fields = parse(parts);
    if (seq === '0') {
      this.#onEvent(word, fields);
      return;
    }
    const waiting = this.#waiting.get(seq);
    if (waiting === undefined) return;
    this.#waiting.delete(seq);
    if (this.#waiting.size === 0) this.#socket.unref();
    if (word === 'ok') waiting.resolve(fields);
    else waiting.reject(new SpawnerError(fields.code ?? 'unknown', fields.detail ?? 'It was refused.'));
  }

  #lose(): void {
    this.#closed = true;
    for (const { reject } of this.#waiting.values()) reject(lost());
    this.#waiting.clear();
  }
}

function lost(): SandboxerError {
  return new SandboxerError('SBX_EXTENSION_FAILED', 'The spawner went away.', { backend: 'ext.local' });
}
