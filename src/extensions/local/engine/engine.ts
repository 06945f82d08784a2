/**
 * The running machinery of one state directory: the spawner (started if missing, otherwise adopted), the skeleton of the image
 * `host`, the agent's copy, the compiled seccomp filter.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { HostFacts } from '../host/host-facts.ts';
import type { LocalOptions } from '../host/options.ts';
import { DEFAULTS } from '../host/options.ts';
import { seccompProfile } from '../seccomp/seccomp.ts';
import type { Layout } from '../state/layout.ts';
import type { RootFs } from '../state/root-fs.ts';
import { OUR_PROCESS } from '../state/root-fs.ts';
import { BlankDisks } from './blank-disks.ts';
import { SharedFlush } from './shared-flush.ts';
import { hostPaths, skeletonDigest, writeSkeleton } from './skeleton.ts';
import type { Fields } from './spawner-client.ts';
import { SpawnerClient, SpawnerError } from './spawner-client.ts';
import { STORAGE_RANGE } from './uid-ranges.ts';

const START_MS = 10_000;

export interface Machinery {
  readonly client: SpawnerClient;
  /** Root file system of the image `host`. */
  readonly hostImage: RootFs;
  readonly idmap: boolean;
  readonly cgroups: string;
}

export type SeccompSetting = { readonly bpf: string } | { readonly profile: object };

function unavailable(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_UNAVAILABLE', detail, {
    creation: 'not_created',
    backend: 'ext.local',
    remedy,
    retryable: false,
  });
}

/** Returns the expected controllers that this spawner, by the description of its groups ("v2,memory,freezer"), does not have. */
export function lackingControllers({ controllers }: HostFacts, described: string): string[] {
  const has = described.split(',');
  return controllers.filter((name) => !has.includes(name));
}

/** Verbs that query or set a state: a second call has the same effect as one. */
const REPEATABLE = new Set([
  'destroy',
  'discard',
  'extend',
  'flush',
  'freeze',
  'inspect',
  'measure',
  'status',
  'thaw',
]);

export class Engine {
  readonly #options: LocalOptions;
  readonly #facts: HostFacts;
  readonly #layout: Layout;
  readonly #onEvent: (word: string, fields: Fields) => void;
  readonly #onUp: () => void;
  #running: Promise<Machinery> | null = null;
  #client: SpawnerClient | null = null;
  readonly blanks: BlankDisks;
  readonly #flush = new SharedFlush(() => this.call('flush'));
  #bpf: string | null = null;
  #closed = false;

  constructor(
    options: LocalOptions,
    facts: HostFacts,
    layout: Layout,
    on: { event(word: string, fields: Fields): void; up(): void },
  ) {
    this.#options = options;
    this.#facts = facts;
    this.blanks = new BlankDisks(join(layout.base, 'disks'), facts.diskMaker ?? 'mkfs.ext4');
    this.#layout = layout;
    this.#onEvent = on.event;
    this.#onUp = on.up;
  }

  get sudoHelper(): string | null {
    return this.#facts.binaries.sudo;
  }

  get up(): boolean {
    return this.#running !== null;
  }

  /** Whether the connection to the spawner is open, so that its events arrive. */
  get hears(): boolean {
    return this.#client?.closed === false;
  }

  /** Returns the machinery, and starts it when it does not run. */
  async machinery(): Promise<Machinery> {
    if (this.#closed) throw unavailable('The extension was closed.', 'Start the server again.');
    if (this.#client?.closed) this.#running = null;
    this.#running ??= this.#bringUp().catch((error: unknown) => {
      this.#running = null;
      throw error;
    });
    return await this.#running;
  }

  /**
   * Calls the spawner. A call that a leaving or killed spawner did not answer goes to its successor, if its verb is repeatable.
   */
  async call(verb: string, fields: Readonly<Record<string, string | number>> = {}): Promise<Fields> {
    const { client } = await this.machinery();
    try {
      return await client.call(verb, fields);
    } catch (error) {
      if (!client.closed || error instanceof SpawnerError || !REPEATABLE.has(verb)) throw error;
      return await (await this.machinery()).client.call(verb, fields);
    }
  }

  /** Resolves when all writes below the base before this call are on the disk. */
  async flushed(): Promise<void> {
    await this.#flush.wait();
  }

  close(): void {
    this.#closed = true;
    this.#client?.close();
  }

  /**
   * Returns the filter. crun without a cache compiles it for every start: 2.5 ms. The first compiled filter is used from then on.
   */
  seccomp(): SeccompSetting {
    // Compiled from the profile of this processor, which exists here.
    this.#bpf ??= this.#readFilter();
    if (this.#bpf !== null) return { bpf: this.#bpf };
    const profile = seccompProfile();
    if (profile === null)
      throw unavailable('There is no seccomp profile for this processor.', 'Use x86-64 or arm64.');
    return { profile };
  }

  /** Returns where the spawner stores the filter that the next start compiles; empty once there is one. */
  filterToLearn(): { learn?: string } {
    // Other runtimes compile it, too, but do not store it.
    const tells = this.#facts.runtime?.kind === 'crun';
    return this.#bpf === null && tells ? { learn: this.#filterName() } : {};
  }

  #filterName(): string {
    const key = JSON.stringify([seccompProfile(), this.#facts.runtime]);
    const digest = createHash('sha256').update(key).digest('hex').slice(0, 24);
    return `filter-${digest}.bpf`;
  }

  #readFilter(): string | null {
    try {
      const compiled = readFileSync(join(this.#layout.base, this.#filterName()));
      return compiled.length > 0 && compiled.length % 8 === 0 ? compiled.toString('base64') : null;
    } catch {
      return null;
    }
  }

  async #bringUp(): Promise<Machinery> {
    const { binaries, runtime } = this.#facts;
    if (runtime === null)
      throw unavailable('crun is not installed.', 'Install crun (Debian: apt-get install crun).');
    if (binaries.spawner === null || binaries.agent === null) {
      throw unavailable(
        'The agent or the spawner was not built.',
        'Install a C compiler (Debian: apt-get install gcc libc6-dev) and start the server again: it builds them.',
      );
    }
    mkdirSync(this.#layout.base, { recursive: true, mode: 0o700 });
    mkdirSync(this.#layout.snapshots, { recursive: true, mode: 0o700 });
    const agent = this.#agentCopy(binaries.agent);
    const client = await this.#connect(binaries.spawner, agent);
    this.#client = client;
    this.blanks.sweep();
    const hello = await client.call('hello');
    const skeleton = await this.#skeleton(client);
    setImmediate(this.#onUp);
    return {
      client,
      hostImage: { layers: [skeleton], host: hostPaths().map((path) => path.slice(1)), process: OUR_PROCESS },
      idmap: hello.idmap === '1',
      cgroups: hello.cgroups ?? 'none',
    };
  }

  async #connect(binary: string, agent: string): Promise<SpawnerClient> {
    const until = Date.now() + START_MS;
    const found = await SpawnerClient.open(this.#layout.control, this.#onEvent).catch(() => null);
    if (found !== null) {
      const hello = await found.call('hello').catch(() => null);
      const current = hello?.agent === agent && hello.build === (await this.#buildOf(binary));
      // A spawner that was started before control groups were delegated enforces no limits: it is replaced.
      if (current && lackingControllers(this.#facts, hello.cgroups ?? '').length === 0) return found;
      await found.call('retire').catch(() => {});
      found.close();
    }
    for (let tries = 0; ; tries++) {
      if (tries % 15 === 0) this.#start(binary, agent);
      await sleep(tries < 20 ? 2 : 20);
      const client = await SpawnerClient.open(this.#layout.control, this.#onEvent).catch(() => null);
      if (client !== null && (await client.call('hello').catch(() => null)) !== null) return client;
      client?.close();
      if (Date.now() > until) {
        const detail = `The spawner does not start: ${this.#lastWords()}`;
        throw unavailable(detail, `See ${join(this.#layout.base, 'spawner.log')} and \`sandboxer doctor\`.`);
      }
    }
  }

  #buildOf(binary: string): Promise<string> {
    return new Promise((resolve) => {
      const child = spawn(binary, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      child.once('close', () => resolve(text.trim()));
      child.once('error', () => resolve(''));
    });
  }

  #lastWords(): string {
    try {
      const lines = readFileSync(join(this.#layout.base, 'spawner.log'), 'utf8').trim().split('\n');
      return lines.at(-1) ?? 'it says nothing';
    } catch {
      return 'it says nothing';
    }
  }

  /** Tests all that every sandbox needs, in namespaces of its own. Returns `null` when all is well. */
  async check(): Promise<string | null> {
    const { spawner } = this.#facts.binaries;
    if (spawner === null) return 'the spawner was not built';
    const identity = this.#identity().filter((option) => option !== '--idmap');
    const { stdout } = await promisify(execFile)(spawner, ['--check', ...identity]).catch(
      (error: { stdout?: string }) => ({ stdout: error.stdout || 'it could not be tried' }),
    );
    return stdout.trim() === 'ok' ? null : stdout.trim();
  }

  #identity(): string[] {
    const { root, subordinate } = this.#facts;
    if (root) return [`--storage=${STORAGE_RANGE}`, '--idmap'];
    const map = subordinate && [
      subordinate.firstUid,
      subordinate.uids,
      subordinate.firstGid,
      subordinate.gids,
    ];
    return [`--usermap=${map ? map.join(':') : 'self'}`, `--storage=${map ? 1 : 0}`];
  }

  /** Starts the spawner as a process of its own: it outlives the server, and so does every sandbox. */
  #start(binary: string, agent: string): void {
    const { runtime, unified, ioWeighed } = this.#facts;
    const options = [
      `--base=${this.#layout.base}`,
      `--runtime=${runtime?.path}`,
      `--agent=${agent}`,
      `--group=${this.#layout.group}`,
      `--pool=${this.#options.launchers ?? DEFAULTS.launchers}`,
      `--linger-ms=${this.#options.lingerMs ?? DEFAULTS.lingerMs}`,
      ...this.#identity(),
      ...(this.#options.cgroups === false ? ['--no-cgroups'] : []),
      ...(unified === null ? [] : [`--unified=${unified}`]),
      ...(ioWeighed ? ['--io-weight'] : []),
    ];
    const log = openSync(join(this.#layout.base, 'spawner.log'), 'a', 0o600);
    spawn(binary, options, {
      detached: true,
      stdio: ['ignore', log, log],
      cwd: '/',
      env: { PATH: process.env.PATH },
    }).unref();
    closeSync(log);
  }

  async #skeleton(client: SpawnerClient): Promise<string> {
    const { sudo } = this.#facts.binaries;
    const name = join('skeleton', skeletonDigest(sudo));
    const path = join(this.#layout.base, name);
    if (existsSync(path)) return name;
    mkdirSync(join(this.#layout.base, 'skeleton'), { recursive: true, mode: 0o700 });
    const temporary = `${name}.${process.pid}`;
    writeSkeleton(join(this.#layout.base, temporary), sudo);
    await client.call('own', { path: temporary });
    // Flushes first: after a power cut the file must be complete or missing.
    await client.call('flush');
    try {
      renameSync(join(this.#layout.base, temporary), path);
    } catch (error) {
      if (!existsSync(path)) throw error;
      await client.call('discard', { path: temporary });
    }
    return name;
  }

  /** Returns the agent's copy, named for its content: a new build is another file, and running sandboxes keep theirs. */
  #agentCopy(binary: string): string {
    const bytes = readFileSync(binary);
    const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 24);
    const path = join(this.#layout.base, `agent-${digest}`);
    if (existsSync(path)) return path;
    writeFileSync(`${path}.${process.pid}`, bytes, { mode: 0o700, flush: true });
    renameSync(`${path}.${process.pid}`, path);
    return path;
  }
}
