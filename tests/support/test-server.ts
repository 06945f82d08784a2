/** The whole server in this process, on a real database and a real unix socket, and a client for it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { KeyScope } from '../../src/contract/tenancy/tenancy.ts';
import type { Extension } from '../../src/core/ports/extension.ts';
import type { ResolvedConfig } from '../../src/main/config/config.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import type { RunningServer } from '../../src/main/serve.ts';
import { serve } from '../../src/main/serve.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';
import type { Answer } from '../integration/http/fixture.ts';
import { answerTo, MEMORY_PROFILE, send } from '../integration/http/fixture.ts';

export type Json = Record<string, unknown>;
// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever the server answers
type Any = any;

export interface Call {
  readonly key?: string;
  readonly json?: unknown;
  readonly headers?: Record<string, string>;
}

/** The same backend, and it understands elevated inputs. */
function elevatable(extension: Extension): Extension {
  const { header } = extension;
  const elevated = { ...header, capabilities: { ...header.capabilities, elevated: true } };
  return new Proxy(extension, {
    get(target, name) {
      if (name === 'header') return elevated;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

export class TestServer {
  readonly dir = mkdtempSync(join(tmpdir(), 'sandboxer-test-'));
  readonly #change: (config: ResolvedConfig) => Partial<ResolvedConfig>;
  /** Sandboxes live here, so a restart of the server finds them again. */
  readonly #extension = elevatable(createMemoryExtension());
  #running: RunningServer | null = null;

  constructor(change: (config: ResolvedConfig) => Partial<ResolvedConfig> = () => ({})) {
    this.#change = change;
  }

  static async start(change?: (config: ResolvedConfig) => Partial<ResolvedConfig>): Promise<TestServer> {
    const server = new TestServer(change);
    await server.start();
    const pushed = await server.call('POST', '/v1/profiles', { json: MEMORY_PROFILE });
    if (pushed.status > 201) throw new Error(pushed.text);
    return server;
  }

  get running(): RunningServer {
    if (!this.#running) throw new Error('The server is stopped.');
    return this.#running;
  }

  async start(): Promise<void> {
    const env = {
      SANDBOXER_STATE_DIR: this.dir,
      SANDBOXER_LOG_LEVEL: 'silent',
      SANDBOXER_LOCAL: '0',
      SANDBOXER_DOCKER: '0',
    };
    const config = loadConfig(env);
    this.#running = await serve({
      config: { ...config, ...this.#change(config) },
      env,
      extensions: [this.#extension],
    });
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = null;
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  call(method: string, path: string, { key, json, headers = {} }: Call = {}): Promise<Answer> {
    const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const socketPath = join(this.dir, 'sandboxer.sock');
    return answerTo(
      send({ socketPath }, method, path, {
        ...(json === undefined ? {} : { json }),
        headers: { ...authorization, ...headers },
      }),
    );
  }

  /** Like `call`; anything but the expected status is an error. */
  async expect(status: number, method: string, path: string, options: Call = {}): Promise<Any> {
    const answer = await this.call(method, path, options);
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  /** A workspace of its own with an administrator's key for it. */
  async workspace(
    id: string,
    scopes: readonly string[] = KeyScope.options.filter((scope) => scope !== 'server'),
  ) {
    await this.expect(201, 'POST', '/v1/workspaces', { json: { workspace_id: id, org_id: 'default' } });
    return this.key(id, 'adm', scopes);
  }

  async key(workspaceId: string, actor: string, scopes: readonly string[]): Promise<string> {
    const json = { name: `${actor} of ${workspaceId}`, workspace_id: workspaceId, actor, scopes };
    const { secret } = await this.expect(201, 'POST', '/v1/keys', { json });
    return secret as string;
  }

  async sandbox(options: Call & { readonly id?: string } = {}): Promise<string> {
    const json = { profile: MEMORY_PROFILE.id, ...(options.id === undefined ? {} : { id: options.id }) };
    const { sandbox_id } = await this.expect(201, 'POST', '/v1/sandboxes', { ...options, json });
    return sandbox_id as string;
  }

  /** Every event of the log, oldest first. */
  async events(options: Call = {}): Promise<Any[]> {
    const all: Any[] = [];
    for (;;) {
      const after = all.at(-1)?.data.seq ?? 0;
      const page = await this.expect(200, 'GET', `/v1/events?limit=500&after=${after}`, options);
      all.push(...page.items);
      if (page.items.length < 500) return all;
    }
  }
}

export async function until(
  what: string,
  done: () => Promise<boolean> | boolean,
  ms = 60_000,
): Promise<void> {
  const endsAt = Date.now() + ms;
  while (!(await done())) {
    if (Date.now() > endsAt) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(20);
  }
}
