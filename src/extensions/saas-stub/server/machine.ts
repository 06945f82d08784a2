import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ProcessInfo } from '../../../contract/sandboxes/exec.ts';
import type { ChannelRequestOf } from '../wire/channel.ts';
import type { Boot } from '../wire/protocol.ts';
import { confined, notFound, refused } from './confined-path.ts';
import { MachineFiles } from './machine-files.ts';
import { ManagedProcess } from './managed-process.ts';
import type { TreeSelector } from './process-tree.ts';
import { eradicateTree, signalTree } from './process-tree.ts';

const run = promisify(execFile);
const ENDED_KEPT = 64;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  await run('cp', ['-a', '--', `${from}/.`, to]);
}

/** Directory of an object, with the processes that were started in it. */
export class Machine {
  /** Directory of its files. Programs start here; they are not confined to it. */
  readonly root: string;
  readonly files: MachineFiles;
  readonly #directory: string;
  readonly #marker: string;
  readonly #processes = new Map<string, ManagedProcess>();
  /** Whether a process was ever started: without one the walk through /proc is skipped. */
  #used = false;

  constructor(directory: string, marker: string) {
    this.#directory = directory;
    this.#marker = marker;
    this.root = join(directory, 'root');
    this.files = new MachineFiles(this.root);
  }

  async build(boot: Boot, origin: string | null): Promise<void> {
    const secrets = join(this.#directory, 'secrets');
    await mkdir(this.root, { recursive: true });
    if (origin !== null) await copyTree(origin, this.root);
    await mkdir(secrets, { recursive: true, mode: 0o700 });
    const env: Record<string, string> = { ...boot.env };
    for (const { name, content } of boot.files) {
      env[`${name}_FILE`] = join(secrets, name);
      await writeFile(join(secrets, name), content, { mode: 0o600 });
    }
    await writeFile(this.#environmentFile(), JSON.stringify(env), { mode: 0o600 });
  }

  async start(request: ChannelRequestOf<'spawn'>): Promise<ManagedProcess> {
    this.#used = true;
    const cwd = request.cwd;
    const directory = cwd === null ? this.root : await this.#directoryAt(cwd);
    const id = randomUUID();
    const marker = `SANDBOXER_STUB_PROCESS=${id}`;
    const [name = '', value = ''] = this.#marker.split('=');
    const process = new ManagedProcess({
      id,
      argv: request.argv,
      env: {
        PATH,
        HOME: this.root,
        ...(JSON.parse(readFileSync(this.#environmentFile(), 'utf8')) as Record<string, string>),
        ...request.env,
        [name]: value,
        SANDBOXER_STUB_PROCESS: id,
      },
      directory,
      marker,
      timeoutSeconds: request.timeout_seconds,
      stdin: request.stdin,
      background: request.background,
    });
    this.#processes.set(id, process);
    this.#forgetOld();
    return process;
  }

  process(id: string): ManagedProcess {
    const process = this.#processes.get(id);
    if (process?.background) return process;
    throw new SandboxerError('SBX_PROCESS_NOT_FOUND', `There is no background process ${id}.`);
  }

  processes(): ProcessInfo[] {
    return [...this.#processes.values()].map(({ info }) => info);
  }

  freeze(): void {
    if (!this.#used) return;
    for (let last = -1, now = 0; last !== now; ) {
      last = now;
      now = signalTree(this.#tree(), 'SIGSTOP');
    }
  }

  thaw(): void {
    if (this.#used) signalTree(this.#tree(), 'SIGCONT');
  }

  async killAll(): Promise<void> {
    if (this.#used) await eradicateTree(this.#tree());
  }

  async destroy(): Promise<void> {
    await this.killAll();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #tree(): TreeSelector {
    return { marker: this.#marker, directory: this.#directory };
  }

  #environmentFile(): string {
    return join(this.#directory, 'environment.json');
  }

  async #directoryAt(cwd: string): Promise<string> {
    return await confined(this.root, cwd, { followLast: true }, async ({ shown, stats }) => {
      if (stats === null) throw notFound(cwd);
      if (!stats.isDirectory()) throw refused(cwd, 'it is not a directory');
      return shown;
    });
  }

  #forgetOld(): void {
    const ended = [...this.#processes.values()].filter(({ status }) => status !== null);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - ENDED_KEPT))) this.#processes.delete(id);
  }
}
