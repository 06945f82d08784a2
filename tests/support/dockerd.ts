/**
 * A real Docker engine for tests, in namespaces of its own: its mounts, interfaces, firewall rules and processes exist
 * nowhere else, so that many run beside each other and killing one process removes all of it.
 *
 *     const engine = await startDockerd();          // engine.socket, engine.image
 *     await engine.docker('run', '--rm', engine.image, 'true');
 *     await engine.close();
 */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { writeBusyboxTree } from './busybox-tree.ts';

const run = promisify(execFile);
const DOCKERD = '/usr/sbin/dockerd';
const BUSYBOX = '/bin/busybox';
const ENV = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin` };

export interface DockerdOptions {
  /** The engine's own configuration file: `live-restore`, `userns-remap`, `runtimes`, `default-address-pools` … */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Of the command line, such as more places to listen at; the unix socket is always there. */
  readonly arguments?: readonly string[] | ((engine: Dockerd) => readonly string[]);
  /** What is to be done beside the engine before it starts, such as mounting its disk. */
  readonly prepare?: (engine: Dockerd) => Promise<void>;
  /** A link between this machine and the engine's network namespace, so that published ports can be reached. */
  readonly link?: boolean;
}

/** Why no engine can be started here, or `null`. */
/** Runtimes give what they get to whom they run as: that is then not the machine's own. Not where devices cannot be made. */
const OWN_NULL =
  'mknod "$0" c 1 3 && chmod 666 "$0" && { : >"$0"; } 2>"$0.refused" && mount --bind "$0" /dev/null || :';

export function whyNoDockerd(): string | null {
  if (process.getuid?.() !== 0) return 'only root can start an engine';
  for (const file of [DOCKERD, BUSYBOX]) if (!existsSync(file)) return `${file} is not installed`;
  for (const tool of ['docker', 'docker-init', 'unshare', 'nsenter', 'setpriv', 'ip', 'tar']) {
    if (spawnSync('which', [tool], { env: ENV }).status !== 0) return `${tool} is not installed`;
  }
  return null;
}

export async function startDockerd(options: DockerdOptions = {}): Promise<Dockerd> {
  const engine = new Dockerd(options);
  try {
    await engine.open();
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

class Dockerd {
  readonly directory = mkdtempSync(join(tmpdir(), 'sbx-dockerd-'));
  readonly socket = join(this.directory, 'docker.sock');
  /** A busybox userland with user 1000, imported when the engine was started. */
  readonly image = 'sandboxer-test/busybox:1';
  readonly #cgroup = `sbx-dockerd-${randomBytes(4).toString('hex')}`;
  readonly #options: DockerdOptions;
  #holder: ChildProcess | null = null;
  #daemon: ChildProcess | null = null;
  #namespacePid = 0;
  #address: string | null = null;
  #link = '';

  constructor(options: DockerdOptions) {
    this.#options = options;
  }

  /** Where the engine's network namespace is reached from here; only with `link`. */
  get address(): string {
    if (this.#address === null) throw new Error('start the engine with { link: true }');
    return this.#address;
  }

  /** What the engine wrote so far. */
  get log(): string {
    return readFileSync(join(this.directory, 'log'), 'utf8');
  }

  async open(): Promise<void> {
    await this.#makeNamespaces();
    await this.enter('sh', '-c', OWN_NULL, join(this.directory, 'null'));
    await this.#options.prepare?.(this);
    await this.startDaemon();
    await this.importImage(this.image);
  }

  /** The command as it runs beside the engine: in its namespaces, where its networks and containers are. */
  inside(...command: string[]): string[] {
    const entry = ['nsenter', '--target', String(this.#namespacePid), '--mount', '--net', '--pid'];
    return [...entry, '--', ...command];
  }

  /** Runs a command beside the engine and gives what it printed. */
  async enter(...command: string[]): Promise<string> {
    const [file = '', ...args] = this.inside(...command);
    return (await run(file, args, { env: ENV, maxBuffer: 1 << 26 })).stdout;
  }

  /** Runs the `docker` command on this engine and gives what it printed. */
  async docker(...args: string[]): Promise<string> {
    const { stdout } = await run('docker', ['--host', `unix://${this.socket}`, ...args], {
      env: { ...ENV, DOCKER_CONFIG: join(this.directory, 'client') },
      maxBuffer: 1 << 26,
    });
    return stdout.trim();
  }

  /** Makes an image of the busybox userland, and of the files of `extra` (path → content) if there are any. */
  async importImage(name: string, extra: Readonly<Record<string, string>> = {}): Promise<void> {
    const tree = mkdtempSync(join(this.directory, 'tree-'));
    writeBusyboxTree(tree, extra);
    const archive = `${tree}.tar`;
    await run('tar', ['--numeric-owner', '-C', tree, '-cf', archive, '.']);
    await this.docker('import', '--change', 'CMD ["/bin/sh"]', archive, name);
    rmSync(tree, { recursive: true });
    rmSync(archive);
  }

  async startDaemon(): Promise<void> {
    const config = join(this.directory, 'daemon.json');
    writeFileSync(config, JSON.stringify(this.#options.config ?? {}));
    const { arguments: more = [] } = this.#options;
    const [file = '', ...args] = this.inside(
      DOCKERD,
      ...['--config-file', config, '--host', `unix://${this.socket}`],
      ...['--data-root', join(this.directory, 'data'), '--exec-root', join(this.directory, 'exec')],
      ...['--pidfile', join(this.directory, 'pid'), '--cgroup-parent', `/${this.#cgroup}`],
      ...['--oom-score-adjust', '0', ...(typeof more === 'function' ? more(this) : more)],
    );
    const log = join(this.directory, 'log');
    const daemon = spawn('sh', ['-c', 'exec "$@" >>"$0" 2>&1', log, file, ...args], {
      env: ENV,
      stdio: 'ignore',
    });
    this.#daemon = daemon;
    const deadline = Date.now() + 120_000;
    while (!(await this.#answers())) {
      if (daemon.exitCode !== null || daemon.signalCode !== null || Date.now() > deadline) {
        throw new Error(`dockerd did not start:\n${this.log.slice(-4_000)}`);
      }
      await sleep(50);
    }
  }

  /** `SIGTERM` stops the containers first, unless the engine was started with `live-restore`. */
  async stopDaemon(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === null) return;
    const pidfile = join(this.directory, 'pid');
    // nsenter forks into the pid namespace: dockerd is its child, and knows its own id as it is in there.
    if (daemon.exitCode === null && existsSync(pidfile)) {
      await this.enter('kill', `-${signal}`, readFileSync(pidfile, 'utf8').trim()).catch(() => {});
    }
    await ended(daemon);
    rmSync(pidfile, { force: true });
    this.#daemon = null;
  }

  async restartDaemon(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.stopDaemon(signal);
    await this.startDaemon();
  }

  async close(): Promise<void> {
    if (this.#daemon !== null) {
      const containers = await this.docker('ps', '-aq').catch(() => '');
      if (containers !== '') await this.docker('rm', '-f', ...containers.split('\n')).catch(() => {});
    }
    // The first process of the pid namespace takes every other one with it, and those their mounts and links.
    if (this.#namespacePid > 0) process.kill(this.#namespacePid, 'SIGKILL');
    for (const child of [this.#daemon, this.#holder]) if (child !== null) await ended(child);
    for (let tries = 0; tries < 600 && !this.#removeCgroups(); tries++) await sleep(50);
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async #makeNamespaces(): Promise<void> {
    const unshare = ['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const first = ['docker-init', '-s', '--', 'sleep', 'infinity'];
    const command = ['--pdeathsig', 'KILL', ...unshare, '--propagation', 'private', ...first];
    const holder = spawn('setpriv', command, { env: ENV, stdio: 'ignore' });
    this.#holder = holder;
    const children = `/proc/${holder.pid}/task/${holder.pid}/children`;
    for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
      const pid = existsSync(children) ? Number(readFileSync(children, 'utf8').trim()) : 0;
      const command = pid > 0 ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '';
      if (command.startsWith('docker-init')) {
        this.#namespacePid = pid;
        break;
      }
      await sleep(10);
    }
    if (this.#namespacePid === 0) throw new Error('no namespaces could be made');
    // runc refuses a unified hierarchy beside the old ones when that one holds controllers.
    await this.enter('sh', '-c', 'umount /sys/fs/cgroup/unified 2>/dev/null; ip link set lo up');
    if (this.#options.link) await this.#makeLink();
  }

  async #makeLink(): Promise<void> {
    const name = `sbx${randomBytes(4).toString('hex')}`;
    for (let tries = 0; tries < 50; tries++) {
      const [second = 0, third = 0] = randomBytes(2);
      const net = `10.${200 + (second % 50)}.${third}`;
      const taken = (await run('ip', ['-4', 'addr'], { env: ENV })).stdout.includes(`${net}.`);
      if (taken) continue;
      const peer = ['peer', 'name', 'engine0', 'netns', String(this.#namespacePid)];
      await run('ip', ['link', 'add', name, 'type', 'veth', ...peer], { env: ENV });
      await run('ip', ['addr', 'add', `${net}.1/30`, 'dev', name], { env: ENV });
      await run('ip', ['link', 'set', name, 'up'], { env: ENV });
      await this.enter('ip', 'addr', 'add', `${net}.2/30`, 'dev', 'engine0');
      await this.enter('ip', 'link', 'set', 'engine0', 'up');
      await this.enter('ip', 'route', 'add', 'default', 'via', `${net}.1`);
      this.#address = `${net}.2`;
      this.#link = name;
      return;
    }
    throw new Error('no free network for the link');
  }

  /** Nothing reaches the engine's namespace any more, and nothing is refused either; only with `link`. */
  async cutLink(): Promise<void> {
    await run('ip', ['link', 'set', this.#link, 'down'], { env: ENV });
  }

  async mendLink(): Promise<void> {
    await run('ip', ['link', 'set', this.#link, 'up'], { env: ENV });
  }

  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const ping = request({ socketPath: this.socket, path: '/_ping', timeout: 2_000 }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      ping.on('error', () => resolve(false));
      ping.on('timeout', () => ping.destroy());
      ping.end();
    });
  }

  /** Deepest first; a group whose processes have just been killed is busy for a moment. */
  #removeCgroups(): boolean {
    const groups = globSync([`/sys/fs/cgroup/*/${this.#cgroup}/**`, `/sys/fs/cgroup/${this.#cgroup}/**`], {
      withFileTypes: true,
    });
    const directories = groups.filter((entry) => entry.isDirectory());
    const paths = directories.map((entry) => join(entry.parentPath, entry.name));
    for (const path of paths.sort((a, b) => b.length - a.length)) {
      try {
        rmdirSync(path);
      } catch {
        if (existsSync(path)) return false;
      }
    }
    return true;
  }
}

export type { Dockerd };

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}
