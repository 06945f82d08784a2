import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HttpTransport } from '../wire/http-transport.ts';
import type { FaultRule } from '../wire/protocol.ts';
import type { StubWorldState } from '../world/world.ts';

export interface StartStubServerOptions {
  /** Directory of its state. Default: a temporary directory, removed by `stop`. */
  readonly directory?: string;
  readonly key?: string;
  /** Keys of customers, besides its own. */
  readonly keys?: readonly string[];
  readonly port?: number;
  readonly createMs?: number;
  readonly deleteMs?: number;
  readonly capacity?: number;
  readonly webhookUrl?: string;
  readonly faults?: readonly FaultInput[];
  /** Whether it goes on when this process ends. */
  readonly outlives?: boolean;
}

export type FaultInput = Omit<FaultRule, 'params'> & Partial<Pick<FaultRule, 'params'>>;
export type StubObjects = Pick<StubWorldState, 'objects' | 'snapshots' | 'volumes'>;

/** The stub’s process runs this very file: see its end. */
const PROGRAM = fileURLToPath(import.meta.url);

/** A stub that runs as a process of its own. */
export class RunningStub {
  readonly directory: string;
  readonly key: string;
  readonly #options: StartStubServerOptions;
  #child: ChildProcess | null = null;
  #url = '';

  constructor(directory: string, options: StartStubServerOptions) {
    this.directory = directory;
    this.key = options.key ?? randomBytes(16).toString('hex');
    this.#options = options;
  }

  get url(): string {
    return this.#url;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    const options = this.#options;
    const config = {
      directory: this.directory,
      key: this.key,
      keys: options.keys ?? [],
      port: options.port ?? (this.#url === '' ? 0 : Number(new URL(this.#url).port)),
      create_ms: options.createMs ?? 0,
      delete_ms: options.deleteMs ?? 0,
      webhook_url: options.webhookUrl ?? null,
      faults: options.faults ?? [],
      ...(options.capacity === undefined ? {} : { capacity: options.capacity }),
    };
    const tethered = options.outlives !== true;
    const child = spawn(process.execPath, [PROGRAM], {
      stdio: [tethered ? 'pipe' : 'ignore', 'pipe', 'inherit'],
      detached: !tethered,
      env: {
        PATH: process.env.PATH,
        SANDBOXER_STUB_CONFIG: JSON.stringify(config),
        SANDBOXER_STUB_TETHERED: tethered ? '1' : '0',
      },
    });
    this.#child = child;
    if (child.stdout === null) throw new Error('The stub has no output.');
    const lines = createInterface({ input: child.stdout });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The stub ended with ${code} before it listened.`);
    });
    ended.catch(() => {});
    const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
    this.#url = (JSON.parse(line) as { url: string }).url;
    lines.close();
    if (tethered) return;
    child.stdout.destroy();
    child.unref();
  }

  /** Returns a transport that survives its restarts. */
  transport(timeoutMs = 30_000): HttpTransport {
    return new HttpTransport({ baseUrl: this.#url, key: this.key, timeoutMs });
  }

  /** Replaces the active rules. */
  async setFaults(...rules: FaultInput[]): Promise<void> {
    await this.#admin('PUT', '/admin/faults', rules);
  }

  /** Sets the keys that it accepts from now on, besides its own. */
  async setKeys(...keys: string[]): Promise<void> {
    await this.#admin('PUT', '/admin/keys', keys);
  }

  async objects(): Promise<StubObjects> {
    return (await this.#admin('GET', '/admin/objects')) as StubObjects;
  }

  /** Crashes the stub as a power cut would: it sends no message. */
  async crash(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
    if (this.#options.directory === undefined) await rm(this.directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async #admin(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(new URL(path, this.#url), {
      method,
      headers: { authorization: `Bearer ${this.key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`The stub answered ${response.status}: ${await response.text()}`);
    return await response.json();
  }
}

export async function startStubServer(options: StartStubServerOptions = {}): Promise<RunningStub> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'sandboxer-stub-')));
  const stub = new RunningStub(directory, options);
  await stub.start();
  return stub;
}

if (process.argv[1] === PROGRAM) await import('./server-main.ts');
