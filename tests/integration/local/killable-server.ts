/** The whole server with `ext.local` in a process of its own, its spawner, and what runs below that: each can be held or killed. */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import type { Fields } from '../../../src/extensions/local/engine/spawner-client.ts';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { bundleServer } from '../../support/bundle-server.ts';
import type { ChildServer } from '../../support/child-server.ts';
import { removeDir, startChild, temporaryDir } from '../../support/child-server.ts';

const PROGRAM = join(import.meta.dirname, '..', 'hosts', 'server.ts');
const CONFIG = 'timing: { first_retry: 1s, longest_retry: 1s, reconcile: 1s, wait: 60s }\n';

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export function names(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** The letter of its state; empty when it is gone, also where nobody has asked for its end yet. */
export function stateOf(pid: number): string {
  const letter = /^State:\s+(\w)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? '';
  return letter === 'Z' || letter === 'X' ? '' : letter;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export const goOn = (pid: number): void => signal(pid, 'SIGCONT');

/** Resolves when it stands still, or is gone. */
export async function hold(pid: number): Promise<void> {
  signal(pid, 'SIGSTOP');
  await until('it stands still', () => 'tT'.includes(stateOf(pid)) || null);
}

export async function killed(pid: number): Promise<void> {
  signal(pid, 'SIGKILL');
  await until(`${pid} is gone`, () => stateOf(pid) === '' || null);
}

/** Looks again and again until it is not `null`. */
export async function until<T>(
  what: string,
  look: () => T | null | Promise<T | null>,
  { ms = 60_000, every = 5 } = {},
): Promise<T> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(every)) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new Error(`it did not come to that: ${what}`);
}

export class KillableServer {
  readonly dir: string;
  readonly client: SandboxerClient;
  readonly #program: string;
  #child: ChildServer;

  private constructor(program: string, child: ChildServer) {
    this.dir = child.dir;
    this.#program = program;
    this.#child = child;
    this.client = new SandboxerClient({ url: `unix:${child.socketPath}` });
  }

  static async start(): Promise<KillableServer> {
    const dir = temporaryDir();
    writeFileSync(join(dir, 'config.yaml'), CONFIG);
    const program = await bundleServer(PROGRAM, 'killable');
    return new KillableServer(program, await KillableServer.#begin(program, dir));
  }

  static async #begin(program: string, dir: string): Promise<ChildServer> {
    return await startChild(program, dir, {
      SANDBOXER_LOCAL: '1',
      SANDBOXER_CONFIG: join(dir, 'config.yaml'),
    });
  }

  get base(): string {
    return join(this.dir, 'local');
  }

  get pid(): number {
    return this.#child.process.pid as number;
  }

  /** Why nothing can be tried here, or `null`. */
  async whyNot(): Promise<string | null> {
    const { items } = await this.client.extensions.list();
    const local = items.find(({ id }) => id === 'ext.local');
    if (local === undefined) return 'ext.local is not enabled';
    return local.health.status === 'undetected' ? local.health.detail : null;
  }

  /** `kill -9`, unless it is dead, and a new one in the same directory. */
  async again(): Promise<void> {
    await this.#child.kill();
    this.#child = await KillableServer.#begin(this.#program, this.dir);
  }

  async inside(id: string, script: string): Promise<string> {
    const { stdout, stderr, exit } = await this.client
      .exec(id, { command: ['/bin/sh', '-c', script] })
      .result();
    if (exit.code !== 0) throw new Error(`${exit.code}: ${stderr}`);
    return stdout;
  }

  async ask(verb: string, fields: Record<string, string> = {}): Promise<Fields> {
    const spawner = await SpawnerClient.open(join(this.base, 'spawner.sock'), () => {});
    try {
      return await spawner.call(verb, fields);
    } finally {
      spawner.close();
    }
  }

  /** The one that is there, or will be soon. */
  async spawner(): Promise<number> {
    const hello = () => this.ask('hello').catch(() => null);
    return Number((await until('there is a spawner', hello)).pid);
  }

  layers(): string[] {
    return names(join(this.base, 'layers'));
  }

  /** Its attempt as the backend knows it: the name of its directory. */
  async attemptOf(id: string): Promise<string> {
    const { uid } = await this.client.sandboxes.get(id);
    return names(join(this.base, 'sandboxes')).find((name) => name.startsWith(uid)) ?? '';
  }

  recordOf(attempt: string): { layers: string[]; sealed: boolean } {
    return JSON.parse(readFileSync(join(this.base, 'sandboxes', attempt, 'record.json'), 'utf8'));
  }

  /** Everything that a record of a sandbox or a snapshot needs, by the name of its directory. */
  needed(): string[] {
    const records = [
      ...names(join(this.base, 'snapshots')).map((name) => join(this.base, 'snapshots', name)),
      ...names(join(this.base, 'sandboxes')).map((name) => join(this.base, 'sandboxes', name, 'record.json')),
    ];
    const layers = records.flatMap((path): string[] => JSON.parse(read(path) || '{"layers":[]}').layers);
    const own = layers.filter((layer) => layer.startsWith('layers/'));
    return [...new Set(own.map((layer) => layer.split('/')[1] as string))].sort();
  }

  async close(): Promise<void> {
    for await (const { sandbox_id } of this.client.sandboxes.list({ state: ['ready', 'active', 'paused'] }))
      await this.client.sandboxes.destroy(sandbox_id);
    this.client.close();
    await this.#child.stop();
    const pid = await this.ask('hello').then(
      (hello) => Number(hello.pid),
      () => null,
    );
    if (pid !== null) {
      await this.ask('retire').catch(() => {});
      await until('the spawner has left', () => stateOf(pid) === '' || null);
    }
    removeDir(this.dir);
  }
}

/** Children of it with one of these names. */
export function childrenOf(pid: number, ...called: string[]): number[] {
  const pids = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
  return pids.filter((child) => called.includes(read(`/proc/${child}/comm`).trim()));
}

/** Whether it has something open below the directory. */
export function hasOpen(pid: number, directory: string): boolean {
  return names(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(`${directory}/`);
    } catch {
      return false;
    }
  });
}
