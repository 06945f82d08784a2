/** A whole server with a sandbox whose ports are shown, bare sockets on both sides of its previews. */
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import type { ResolvedConfig } from '../../src/main/config/config.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { removeDir, temporaryDir } from './child-server.ts';
import { UnixClient } from './unix-client.ts';

export interface Preview {
  readonly url: string;
  /** Host and port, as a browser names them. */
  readonly host: string;
  readonly token: string;
}

/** What listens inside: it is handed each connection once the head of a request has arrived on it. */
export class Inside {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The heads of all requests so far. */
  readonly seen: string[] = [];
  answer: (socket: Socket, head: string) => void = (socket) => socket.destroy();

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
      let text = '';
      const read = (chunk: Buffer) => {
        text += chunk.toString('latin1');
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        socket.off('data', read);
        socket.pause();
        const rest = text.slice(end + 4);
        if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
        this.seen.push(text.slice(0, end));
        this.answer(socket, text.slice(0, end));
        // Nobody sees the end of a connection that he does not read.
        socket.resume();
      };
      socket.on('data', read);
    });
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

export class PreviewWorld {
  readonly inside = new Inside();
  readonly #dir = temporaryDir();
  #stub: RunningStub | null = null;
  #server: RunningServer | null = null;
  #client: UnixClient | null = null;
  #sandbox = '';

  static async start(preview: Partial<ResolvedConfig['preview']> = {}): Promise<PreviewWorld> {
    const world = new PreviewWorld();
    await world.#start(preview);
    return world;
  }

  get client(): UnixClient {
    if (!this.#client) throw new Error('The server is stopped.');
    return this.#client;
  }

  get sandbox(): string {
    return this.#sandbox;
  }

  async #start(preview: Partial<ResolvedConfig['preview']>): Promise<void> {
    await this.inside.listen();
    this.#stub = await startStubServer();
    const env = {
      SANDBOXER_STATE_DIR: this.#dir,
      SANDBOXER_LOG_LEVEL: 'silent',
      SANDBOXER_LOCAL: '0',
      SANDBOXER_DOCKER: '0',
    };
    const config = loadConfig(env);
    this.#server = await serve({
      config: { ...config, preview: { ...config.preview, ...preview } },
      env,
      extensions: [createSaasStubExtension({ transport: this.#stub.transport(), price: null })],
    });
    this.#client = new UnixClient(this.#server.socketPath, 2);
    const json = { profile: 'profile.stub-basic' };
    const made = await this.client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', json);
    this.#sandbox = made.sandbox_id;
  }

  async open(body: object = {}): Promise<Preview> {
    const path = `/v1/sandboxes/${this.#sandbox}/ports`;
    const json = { port: this.inside.port, ...body };
    const { url, token } = await this.client.expect<{ url: string; token: string }>(200, 'POST', path, json);
    return { url, token, host: new URL(url).host };
  }

  async stopServer(): Promise<void> {
    this.#client?.close();
    await this.#server?.stop();
    this.#server = null;
  }

  async close(): Promise<void> {
    await this.stopServer();
    await this.#stub?.stop();
    this.inside.close();
    removeDir(this.#dir);
  }
}

/** A visitor who sends whatever bytes. `{host}` and `{token}` stand for those of the preview. */
export class Visitor {
  readonly socket: Socket;
  readonly #port: number;
  text = '';

  constructor(preview: Preview, bytes: string, port = Number(new URL(preview.url).port)) {
    this.#port = port;
    this.socket = connect(this.#port, '127.0.0.1');
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1');
    });
    const filled = bytes.replaceAll('{host}', preview.host).replaceAll('{token}', preview.token);
    this.socket.write(Buffer.from(filled, 'latin1'));
  }

  /** Everything that came until the server closed the connection. */
  async all(): Promise<string> {
    if (!this.socket.closed) await new Promise((resolve) => this.socket.once('close', resolve));
    return this.text;
  }

  /** Resolves when this has arrived. */
  until(what: string | RegExp): Promise<string> {
    const arrived = () => (typeof what === 'string' ? this.text.includes(what) : what.test(this.text));
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!arrived()) return;
        this.socket.off('data', look);
        resolve(this.text);
      };
      this.socket.on('data', look);
      this.socket.once('close', () => reject(new Error(`closed after ${JSON.stringify(this.text)}`)));
      look();
    });
  }
}
