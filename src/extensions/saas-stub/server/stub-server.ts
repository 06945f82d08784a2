import { randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { ChannelRequest } from '../wire/channel.ts';
import { UPGRADE_PROTOCOL } from '../wire/http-transport.ts';
import { FaultRule, StubRequest } from '../wire/protocol.ts';
import { settleOutcome } from '../world/settle-outcome.ts';
import { StubWorld } from '../world/world.ts';
import type { Machine } from './machine.ts';
import { Machines } from './machines.ts';
import { serveChannel } from './serve-channel.ts';
import { StateJournal } from './state-journal.ts';
import { WebhookSender } from './webhook-sender.ts';

export const StubServerConfig = z.strictObject({
  /** Directory of its state. */
  directory: z.string(),
  key: z.string().min(1),
  /** Keys of customers with an account of their own; `/admin/keys` replaces them. */
  keys: z.array(z.string().min(1)).default([]),
  socket_path: z.string().nullable().default(null),
  port: z.number().int().min(0).max(65_535).default(0),
  create_ms: z.number().int().min(0).default(0),
  delete_ms: z.number().int().min(0).default(0),
  capacity: z.number().int().min(1).optional(),
  webhook_url: z.string().nullable().default(null),
  faults: z.array(FaultRule).default([]),
});
export type StubServerConfig = z.infer<typeof StubServerConfig>;

const MAX_BODY_BYTES = 8 * 1_048_576;
const LONGEST_TIMER_MS = 60_000;
/** Requests that are answered once the machine has applied them. */
const FOLLOWED: readonly StubRequest['op'][] = ['pause', 'resume', 'snapshot'];

const READS: readonly StubRequest['op'][] = [
  'health',
  'get',
  'wait_running',
  'wait_gone',
  'list',
  'usage',
  'exec',
];

const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  },
};

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new SandboxerError('SBX_PAYLOAD_TOO_LARGE', 'The request is too large.');
    chunks.push(chunk);
  }
  return size === 0 ? null : JSON.parse(Buffer.concat(chunks).toString());
}

/** The stub as a service: the world behind HTTP, with directories and processes that follow it. */
export class StubServer {
  readonly #config: StubServerConfig;
  readonly #id: string;
  readonly #world: StubWorld;
  readonly #journal: StateJournal;
  readonly #changedNames = new Set<string>();
  readonly #machines: Machines;
  readonly #webhooks: WebhookSender;
  readonly #server: Server;
  readonly #streams = new Set<Duplex>();
  #timer: NodeJS.Timeout | undefined;
  #keys: readonly string[];
  #stopped = false;

  constructor(config: StubServerConfig) {
    this.#config = config;
    this.#keys = config.keys;
    this.#journal = new StateJournal(config.directory);
    const saved = this.#journal.read();
    this.#id = saved?.id ?? randomUUID();
    this.#world = new StubWorld({
      clock: systemClock,
      createMs: config.create_ms,
      deleteMs: config.delete_ms,
      embodied: true,
      faults: saved === null ? config.faults : [],
      ...(config.capacity === undefined ? {} : { capacity: config.capacity }),
      ...(saved === null ? {} : { state: saved.world }),
    });
    this.#machines = new Machines(config.directory, this.#id, this.#world);
    this.#webhooks = new WebhookSender(config.webhook_url);
    this.#world.listen((event) => {
      if (event.type === 'webhook') this.#webhooks.send(event.body);
      else if ('name' in event) this.#changedNames.add(event.name);
      this.#machines.follow(event);
      // The world is in the middle of a change: it is saved once that is done.
      queueMicrotask(() => void this.#changed());
    });
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('upgrade', (request, stream) => this.#upgrade(request, stream));
    // The close of an idle connection races with its next request, which then looks lost: only a fault may lose one.
    this.#server.keepAliveTimeout = 0;
  }

  /** Starts the server and returns its address. */
  async start(): Promise<string> {
    this.#journal.begin(this.#id, this.#world);
    await this.#machines.recover();
    await this.#changed();
    const { socket_path: path, port } = this.#config;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      const listening = () => resolve();
      if (path === null) this.#server.listen(port, '127.0.0.1', listening);
      else this.#server.listen(path, listening);
    });
    const address = this.#server.address();
    return address === null || typeof address === 'string'
      ? 'http://stub'
      : `http://127.0.0.1:${address.port}`;
  }

  /** Ends its processes and keeps its state. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#server.close();
    for (const stream of this.#streams) stream.destroy();
    this.#server.closeAllConnections();
    await this.#machines.killAll();
    await this.#save();
  }

  /** Sets the timer for the next change by time, and resolves when all changes so far are saved. */
  async #changed(): Promise<void> {
    clearTimeout(this.#timer);
    const ms = Math.min(this.#world.nextChangeAt() - Date.now(), LONGEST_TIMER_MS);
    const wake = () => {
      this.#world.advance();
      void this.#changed();
    };
    if (!this.#stopped) this.#timer = setTimeout(wake, Math.max(ms, 0));
    await this.#save();
  }

  async #save(): Promise<void> {
    const names = [...this.#changedNames];
    this.#changedNames.clear();
    await this.#journal.save(names, this.#world);
  }

  #authorized(request: IncomingMessage): boolean {
    const given = Buffer.from(request.headers.authorization ?? '');
    return [this.#config.key, ...this.#keys].some((key) => {
      const wanted = Buffer.from(`Bearer ${key}`);
      return given.length === wanted.length && timingSafeEqual(given, wanted);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const answer = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, code: string, message: string) =>
      answer(status, { error: { code, message, created: false } });
    try {
      if (!this.#authorized(request)) return refuse(401, 'unauthorized', 'The key is not valid.');
      const body = await bodyOf(request);
      if (request.url === '/v1/call') return await this.#call(body, response, answer);
      const admin = await this.#admin(request, body);
      if (admin === undefined) refuse(404, 'no_such_path', 'There is no such path.');
      else answer(200, admin);
    } catch (error) {
      if (response.destroyed || response.headersSent) response.destroy();
      else if (error instanceof z.ZodError) refuse(400, 'invalid', z.prettifyError(error).slice(0, 900));
      else answer(500, { error: { code: 'internal', message: 'The stub failed.' } });
    }
  }

  async #call(
    body: unknown,
    response: ServerResponse,
    answer: (status: number, body: unknown, headers: Readonly<Record<string, string>>) => void,
  ): Promise<void> {
    const request = StubRequest.parse(body);
    const left = new AbortController();
    response.once('close', () => left.abort());
    const outcome = await settleOutcome(this.#world, systemClock, request, left.signal);
    if (FOLLOWED.includes(request.op) && 'name' in request) await this.#machines.settled(request.name);
    if (!READS.includes(request.op)) {
      if ('name' in request) this.#changedNames.add(request.name);
      await this.#changed();
    }
    if (outcome === 'hung') return;
    if (outcome === 'dropped') response.destroy();
    else answer(outcome.status, outcome.body, outcome.headers);
  }

  /** Handles an admin request; returns `undefined` for an unknown path. */
  async #admin({ method, url }: IncomingMessage, body: unknown): Promise<unknown> {
    if (url === '/admin/objects' && method === 'GET') {
      const { objects, snapshots, volumes } = this.#world.toState();
      return { objects, snapshots, volumes };
    }
    if (url === '/admin/keys' && method === 'PUT') {
      this.#keys = z.array(z.string().min(1)).parse(body);
      return { keys: this.#keys.length };
    }
    if (url !== '/admin/faults') return undefined;
    if (method === 'PUT') this.#world.faults.set(z.array(FaultRule).parse(body));
    else if (method === 'POST') this.#world.faults.add(FaultRule.parse(body));
    else if (method !== 'GET') return undefined;
    await this.#changed();
    return { rules: this.#world.faults.rules };
  }

  #upgrade(request: IncomingMessage, stream: Duplex): void {
    stream.on('error', () => {});
    const known = request.url === '/v1/channel' && request.headers.upgrade === UPGRADE_PROTOCOL;
    if (!known || !this.#authorized(request)) {
      stream.end(`HTTP/1.1 ${known ? '401 Unauthorized' : '404 Not Found'}\r\nConnection: close\r\n\r\n`);
      return;
    }
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    stream.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${UPGRADE_PROTOCOL}\r\n\r\n`,
    );
    void serveChannel(stream, { admit: (channel) => this.#admit(channel, stream) });
  }

  async #admit(request: ChannelRequest, stream: Duplex): Promise<Machine | null> {
    const { name, owner } = request;
    const left = new AbortController();
    stream.once('close', () => left.abort());
    const question = { op: request.channel === 'spawn' ? 'exec' : 'get', name, owner } as const;
    const outcome = await settleOutcome(this.#world, systemClock, question, left.signal);
    if (outcome === 'dropped') return null;
    if (outcome === 'hung') return await new Promise<never>(() => {});
    if (outcome.status === 404) throw new SandboxerError('SBX_BACKEND_LOST', `There is no "${name}".`);
    if (outcome.status === 409) throw new SandboxerError('SBX_INVALID_STATE', `"${name}" is not running.`);
    if (outcome.status !== 200) throw new SandboxerError('SBX_EXTENSION_FAILED', 'The stub failed.');
    return this.#machines.find(name);
  }
}
