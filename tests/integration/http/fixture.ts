/** A control plane in memory behind a real HTTP server on a real unix socket, and a plain client for it. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { parseProfileDocument, parseProfileText } from '../../../src/catalogue/profiles/profile-document.ts';
import type { Extension } from '../../../src/core/ports/extension.ts';
import { silentLog } from '../../../src/core/ports/log.ts';
import type { Store } from '../../../src/core/ports/store/store.ts';
import { callerByTransport, localCaller } from '../../../src/http/keys/caller-for.ts';
import { createHttpServer } from '../../../src/http/server/server.ts';
import type { HttpLimits, HttpOptions } from '../../../src/http/services/http-options.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { ControlPlane } from '../../../src/main/wire.ts';
import { wire } from '../../../src/main/wire.ts';
import { memoryDatabase } from '../../../src/store/memory/memory-database.ts';
import { MemoryStore } from '../../../src/store/memory/memory-store.ts';
import { createMemoryExtension } from '../../../src/testing/memory/memory-extension.ts';

export const MEMORY_PROFILE = {
  id: 'profile.stub-memory',
  version: '1.0.0',
  extension: 'ext.memory',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  overridable: ['workspace'],
  ttl: { default: '1h', max: '2h' },
};
export const LIVE_PROFILE = { ...MEMORY_PROFILE, id: 'profile.stub-live', extension: 'ext.saas-stub' };

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server answers
  readonly json: any;
}

export interface CallOptions {
  readonly json?: unknown;
  readonly body?: Uint8Array | string;
  readonly headers?: Record<string, string>;
}

export interface Target {
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
}

export function send(target: Target, method: string, path: string, options: CallOptions = {}): ClientRequest {
  const body = options.json === undefined ? options.body : JSON.stringify(options.json);
  const outgoing = request({
    ...target,
    method,
    path,
    agent: false,
    headers: {
      ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...options.headers,
    },
  });
  outgoing.end(body);
  return outgoing;
}

export function responseTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', resolve);
    outgoing.once('error', reject);
  });
}

export async function answerTo(outgoing: ClientRequest): Promise<Answer> {
  const response = await responseTo(outgoing);
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  const bytes = Buffer.concat(parts);
  const text = bytes.toString();
  const type = String(response.headers['content-type'] ?? '');
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes,
    text,
    json: /json\b/.test(type) && !type.includes('ndjson') ? JSON.parse(text) : null,
  };
}

export interface Fixture {
  readonly control: ControlPlane;
  readonly store: Store;
  readonly app: FastifyInstance;
  readonly target: Target;
  readonly options: HttpOptions;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** A ready sandbox of a profile; its id. */
  create(profile?: string): Promise<string>;
  close(): Promise<void>;
}

export interface FixtureOptions {
  readonly extensions?: readonly Extension[];
  readonly limits?: Partial<HttpLimits>;
  readonly store?: Store;
  readonly env?: NodeJS.ProcessEnv;
  /** On top of what every fixture has. */
  readonly config?: Readonly<Record<string, unknown>>;
}

export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const dir = await mkdtemp(join(tmpdir(), 'sandboxer-http-'));
  const store = options.store ?? new MemoryStore(memoryDatabase());
  const extensions = [createMemoryExtension(), ...(options.extensions ?? [])];
  // What this machine happens to have must not show in an answer: only the extensions that a test gives.
  const off = { enabled: false };
  const config = loadConfig(
    { SANDBOXER_STATE_DIR: dir },
    { extensions: { local: off, docker: off, compose_ssh: off }, ...options.config },
  );
  const control = await wire({ config, log: silentLog, env: options.env ?? {}, store, extensions });
  const http: HttpOptions = {
    control,
    version: '0.0.0-test',
    log: false,
    metrics: new Registry(),
    callerFor: callerByTransport(control, localCaller('default', 'default')),
    isReady: () => true,
    parseProfile(upload) {
      if (upload.kind === 'json') {
        const profile = parseProfileDocument(upload.document);
        return { profile, source: upload.document as Record<string, unknown> };
      }
      const { profile, document } = parseProfileText(upload.text);
      return { profile, source: document };
    },
    ...(options.limits ? { limits: options.limits } : {}),
  };
  const app = await createHttpServer(http);
  const socketPath = join(dir, 'http.sock');
  await app.listen({ path: socketPath });
  const target = { socketPath };
  const call = (method: string, path: string, given?: CallOptions) =>
    answerTo(send(target, method, path, given));
  const must = async (status: number, answer: Promise<Answer>) => {
    const got = await answer;
    if (got.status !== status && !(status === 201 && got.status === 200))
      throw new Error(`expected ${status}, got ${got.status}: ${got.text}`);
    return got.json;
  };
  for (const profile of [MEMORY_PROFILE, LIVE_PROFILE])
    await must(201, call('POST', '/v1/profiles', { json: profile }));
  await must(200, call('POST', '/v1/credits/grants', { json: { amount_micro_usd: 1_000_000_000 } }));
  return {
    control,
    store,
    app,
    target,
    options: http,
    call,
    async create(profile = MEMORY_PROFILE.id) {
      const { sandbox_id } = await must(201, call('POST', '/v1/sandboxes', { json: { profile } }));
      return sandbox_id as string;
    },
    async close() {
      await app.close();
      await control.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
