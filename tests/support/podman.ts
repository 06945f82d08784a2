/** Podman's Docker API for tests, in namespaces of its own: killing one process removes all of it. */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { writeBusyboxTree } from './busybox-tree.ts';

const run = promisify(execFile);
const ENV = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin` };

/** Why there can be no engine here, or `null`. */
export function whyNoPodman(): string | null {
  if (process.getuid?.() !== 0) return 'only root can start an engine';
  for (const tool of ['podman', 'conmon', 'runc', 'docker', 'unshare', 'ip', 'tar', 'busybox']) {
    if (spawnSync('which', [tool], { env: ENV }).status !== 0) return `${tool} is not installed`;
  }
  return null;
}

/** It asks for more than it may have where its own process has less than usual. */
function hardLimit(name: string): string {
  const text = readFileSync('/proc/self/limits', 'utf8');
  const value = new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, 'm').exec(text)?.[1] ?? '65536';
  return `${value}:${value}`;
}

export class Podman {
  readonly directory = mkdtempSync(join(tmpdir(), 'sbx-podman-'));
  readonly socket = join(this.directory, 'podman.sock');
  readonly image = 'sandboxer-test/busybox:1';
  #service: ChildProcess | null = null;

  async open(): Promise<void> {
    const limits = [`nofile=${hardLimit('Max open files')}`, `nproc=${hardLimit('Max processes')}`];
    const config = join(this.directory, 'containers.conf');
    writeFileSync(config, `[containers]\ndefault_ulimits=${JSON.stringify(limits)}\n`);
    const at = (name: string) => join(this.directory, name);
    // runc refuses a unified hierarchy beside the old ones when that one holds controllers.
    const script = 'umount /sys/fs/cgroup/unified 2>/dev/null; ip link set lo up; exec "$@" >"$0" 2>&1';
    const podman = ['podman', '--root', at('root'), '--runroot', at('run'), '--runtime', 'runc'];
    const service = ['--cgroup-manager', 'cgroupfs', 'system', 'service', '--time', '0'];
    const unshare = ['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const inside = ['sh', '-c', script, at('log'), ...podman, ...service, `unix://${this.socket}`];
    const command = ['--pdeathsig', 'KILL', ...unshare, '--propagation', 'private', ...inside];
    const env = { ...ENV, CONTAINERS_CONF: config, TMPDIR: this.directory };
    const child = spawn('setpriv', command, { env, cwd: this.directory, stdio: 'ignore' });
    this.#service = child;
    for (const deadline = Date.now() + 120_000; !(await this.#answers()); await sleep(50)) {
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`podman did not start:\n${readFileSync(at('log'), 'utf8').slice(-4_000)}`);
      }
    }
    await this.#importImage();
  }

  /** Runs the `docker` command on this engine and gives what it printed. */
  async docker(...args: string[]): Promise<string> {
    const { stdout } = await run('docker', ['--host', `unix://${this.socket}`, ...args], { env: ENV });
    return stdout.trim();
  }

  async close(): Promise<void> {
    const child = this.#service;
    if (child !== null && child.exitCode === null) {
      const containers = await this.docker('ps', '-aq').catch(() => '');
      if (containers !== '') await this.docker('rm', '-f', ...containers.split('\n')).catch(() => {});
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async #importImage(): Promise<void> {
    const tree = mkdtempSync(join(this.directory, 'tree-'));
    writeBusyboxTree(tree, {});
    await run('tar', ['--numeric-owner', '-C', tree, '-cf', `${tree}.tar`, '.']);
    await this.docker('import', '--change', 'CMD ["/bin/sh"]', `${tree}.tar`, this.image);
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
}

export async function startPodman(): Promise<Podman> {
  const engine = new Podman();
  try {
    await engine.open();
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
