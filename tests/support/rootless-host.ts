/**
 * A host with two engines: one of root, and a rootless one (`dockerd-rootless.sh` over rootlesskit) of the user who is let in
 * by ssh and exists nowhere else. Everything is in the namespaces of the engine of root.
 */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startSshServer } from '../../src/testing/ssh-server.ts';
import type { ComposeHost } from './compose-host.ts';
import { whyNoComposeHost } from './compose-host.ts';
import type { Dockerd } from './dockerd.ts';
import { startDockerd } from './dockerd.ts';

const run = promisify(execFile);
const SCRIPT = '/usr/share/docker.io/contrib/dockerd-rootless.sh';
const USER = 'sandboxer-rootless';
const UID = 41_958;
const FIRST_SUBORDINATE = 1_400_000_000;
const ENV = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin` };

/** $1 directory: makes the user known, and a tun that every user may open. */
const PREPARE = `set -e
for name in passwd group subuid subgid; do [ -e "/etc/$name" ] || : >"/etc/$name"; mount --bind "$1/etc/$name" "/etc/$name"; done
mknod "$1/tun" c 10 200 && chmod 666 "$1/tun" && mount --bind "$1/tun" /dev/net/tun
`;

/** Without systemd no rootless engine has control groups. Of those the trial needs the freezer alone, for a pause. */
const START = `[ -z "$group" ] || echo 0 >"$group/cgroup.procs"
exec setpriv --reuid=${UID} --regid=${UID} --clear-groups --inh-caps=-all env -i HOME="$1/home" XDG_RUNTIME_DIR="$1/run" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin ${SCRIPT} --data-root "$1/home/data" >"$1/log" 2>&1`;

export interface RootlessHost extends ComposeHost {
  readonly home: string;
  /** Its `XDG_RUNTIME_DIR`. */
  readonly runtime: string;
  /** Whether the user may use the engine of root, too. */
  letIn(toRootful: boolean): void;
  /** Runs the `docker` command on the rootless engine and gives what it printed. */
  docker(...args: string[]): Promise<string>;
  /** Does nothing while the engine runs. `pause`: whether it has what it needs to pause a container. */
  startRootless(options?: { readonly pause?: boolean }): Promise<void>;
  stopRootless(): Promise<void>;
}

/** Why there can be none here, or `null`. */
export function whyNoRootlessHost(): string | null {
  const missing = whyNoComposeHost();
  if (missing !== null) return missing;
  if (!existsSync(SCRIPT)) return `${SCRIPT} is not installed`;
  for (const tool of ['rootlesskit', 'slirp4netns', 'newuidmap'])
    if (spawnSync('which', [tool], { env: ENV }).status !== 0) return `${tool} is not installed`;
  if (!existsSync('/dev/net/tun')) return '/dev/net/tun is not there';
  return null;
}

function freezerOf(engine: Dockerd): string {
  const root = '/sys/fs/cgroup/freezer';
  if (!existsSync(root)) return '';
  const group = join(root, `sbx-rootless-${engine.directory.slice(-6)}`);
  mkdirSync(group, { recursive: true });
  for (const name of ['', 'cgroup.procs', 'tasks', 'freezer.state']) chownSync(join(group, name), UID, UID);
  return group;
}

function removeGroups(group: string): void {
  if (group === '') return;
  for (const path of [...globSync(`${group}/*/`), group]) {
    try {
      rmdirSync(path);
    } catch {
      // It is a file, or busy for a moment longer: an empty group costs nothing.
    }
  }
}

function writeUsers(directory: string): void {
  const etc = join(directory, 'etc');
  mkdirSync(etc, { recursive: true });
  const own = (name: string) => (existsSync(`/etc/${name}`) ? readFileSync(`/etc/${name}`, 'utf8') : '');
  writeFileSync(
    join(etc, 'passwd'),
    `${own('passwd')}${USER}:x:${UID}:${UID}::${join(directory, 'home')}:/bin/sh\n`,
  );
  writeFileSync(join(etc, 'group'), `${own('group')}${USER}:x:${UID}:\n`);
  for (const name of ['subuid', 'subgid'])
    writeFileSync(join(etc, name), `${USER}:${FIRST_SUBORDINATE}:65536\n`);
}

/** The rootless engine does not run yet. */
export async function startRootlessHost(id = 'box'): Promise<RootlessHost> {
  const engine = await startDockerd({ link: true });
  const directory = join(engine.directory, 'rootless');
  const [home, runtime] = [join(directory, 'home'), join(directory, 'run')];
  for (const path of [directory, home, runtime]) mkdirSync(path);
  for (const path of [home, runtime]) chownSync(path, UID, UID);
  for (const path of [engine.directory, directory]) chmodSync(path, 0o755);
  chmodSync(runtime, 0o700);
  writeUsers(directory);
  const group = freezerOf(engine);
  const socket = join(runtime, 'docker.sock');
  let daemon: ChildProcess | null = null;

  const docker = async (...args: string[]) => {
    const env = { ...ENV, DOCKER_CONFIG: join(directory, 'client') };
    const { stdout } = await run('docker', ['--host', `unix://${socket}`, ...args], {
      env,
      maxBuffer: 1 << 26,
    });
    return stdout.trim();
  };
  const stopRootless = async () => {
    const child = daemon;
    daemon = null;
    if (child === null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const pid = readFileSync(join(runtime, 'docker.pid'), 'utf8').trim();
    await engine.enter('kill', '-TERM', pid).catch(() => {});
    await ended;
    rmSync(socket, { force: true });
  };
  const startRootless = async ({ pause = true } = {}) => {
    if (daemon !== null) return;
    const [file = '', ...args] = engine.inside(
      'env',
      `group=${pause ? group : ''}`,
      'sh',
      '-c',
      START,
      'sh',
      directory,
    );
    const child = spawn(file, args, { env: ENV, stdio: 'ignore' });
    daemon = child;
    for (const deadline = Date.now() + 120_000; ; await sleep(100)) {
      if (existsSync(socket) && (await docker('version').catch(() => '')) !== '') break;
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(
          `dockerd did not start:\n${readFileSync(join(directory, 'log'), 'utf8').slice(-4_000)}`,
        );
    }
    await engine.docker('save', '-o', join(directory, 'image.tar'), engine.image);
    await docker('load', '-i', join(directory, 'image.tar'));
  };
  const letIn = (toRootful: boolean) => chmodSync(engine.socket, toRootful ? 0o666 : 0o600);

  try {
    await engine.enter('sh', '-c', PREPARE, 'sh', directory);
    letIn(true);
    const server = await startSshServer({
      address: engine.address,
      wrapper: engine.inside(),
      user: USER,
      environment: {
        HOME: home,
        XDG_RUNTIME_DIR: runtime,
        DOCKER_HOST: `unix://${engine.socket}`,
        DOCKER_CONFIG: join(home, 'client'),
      },
    });
    return {
      engine,
      server,
      host: { id, labels: {}, ssh: server.access() },
      directory: join(home, 'sandboxer'),
      home,
      runtime,
      letIn,
      docker,
      startRootless,
      stopRootless,
      close: async () => {
        await server.stop();
        await engine.close();
        removeGroups(group);
      },
    };
  } catch (error) {
    await engine.close();
    removeGroups(group);
    throw error;
  }
}
