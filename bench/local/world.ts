/** What every benchmark of ext.local needs: a server, a client, and a way to leave nothing behind. */
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { STORAGE_RANGE } from '../../src/extensions/local/uid-ranges.ts';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { startDockerd, whyNoDockerd } from '../../tests/support/dockerd.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Result } from '../harness.ts';
import { summarize } from '../harness.ts';

export const LIMITED = {
  id: 'profile.bench-local',
  version: '1.0.0',
  extension: 'ext.local',
  image: 'host',
  isolation: { level: 'container' },
  network: { default: 'deny' },
  resources: { cpu: 2, memory_mb: 512, pids: 256 },
  ttl: { default: '1h', max: '2h' },
};

export interface World {
  readonly dir: string;
  /** Where everything of the server lies, as we can reach it. */
  readonly state: string;
  readonly client: UnixClient;
  readonly pid: number;
  readonly socketPath: string;
  create(): Promise<string>;
  exec(id: string, command: readonly string[]): Promise<{ exit: { code: number }; stdout: string }>;
  destroy(id: string): Promise<void>;
}

/** Why nothing can be measured here, or `null`. */
export function whyNot(): string | null {
  if (process.platform !== 'linux') return 'not Linux';
  if (process.getuid?.() !== 0) return 'not root: limits are part of what is measured';
  return null;
}

const MAKERS = { btrfs: 'mkfs.btrfs -q', xfs: 'mkfs.xfs -q', ext4: 'mkfs.ext4 -q -F' } as const;
export type FileSystem = keyof typeof MAKERS;

function mountCommand(kind: FileSystem, image: string, point: string): string {
  const path = 'PATH=$PATH:/sbin:/usr/sbin';
  return `${path}; truncate -s 8G ${image} && ${MAKERS[kind]} ${image} >/dev/null 2>&1 && mount -o loop ${image} ${point}`;
}

/** Whether an image of it can be made and mounted here. */
export function canMount(kind: FileSystem): boolean {
  const dir = temporaryDir();
  mkdirSync(join(dir, 'point'));
  const script = mountCommand(kind, join(dir, 'image'), join(dir, 'point'));
  const { status } = spawnSync('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script]);
  removeDir(dir);
  return status === 0;
}

function childOf(pid: number): number {
  return Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), 10);
}

export async function withWorld(
  config: Record<string, unknown>,
  connections: number,
  work: (world: World) => Promise<Result[]>,
  fileSystem: FileSystem | null = null,
): Promise<Result[]> {
  const dir = temporaryDir();
  const state = fileSystem === null ? dir : join(dir, 'state');
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ extensions: { local: { enabled: true, ...config } } }),
  );
  mkdirSync(state, { recursive: true });
  const file = fileSystem === null ? 'local-server.ts' : 'mounted-server.ts';
  const server = await startChild(join(import.meta.dirname, file), dir, {
    SANDBOXER_LOCAL: '1',
    SANDBOXER_CONFIG: join(dir, 'config.json'),
    SANDBOXER_STATE_DIR: state,
    ...(fileSystem === null ? {} : { BENCH_MOUNT: mountCommand(fileSystem, join(dir, 'image'), state) }),
  });
  const client = new UnixClient(server.socketPath, connections);
  try {
    await client.expect(201, 'POST', '/v1/profiles', LIMITED);
    const world: World = {
      dir,
      state: fileSystem === null ? state : `/proc/${childOf(server.process.pid ?? 0)}/root${state}`,
      client,
      pid: server.process.pid ?? 0,
      socketPath: server.socketPath,
      async create() {
        const made = await client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', {
          profile: LIMITED.id,
        });
        return made.sandbox_id;
      },
      exec: (id, command) => client.expect(200, 'POST', `/v1/sandboxes/${id}/exec`, { command }),
      async destroy(id) {
        await client.expect(200, 'DELETE', `/v1/sandboxes/${id}`);
      },
    };
    return await work(world);
  } finally {
    const page = await client
      .expect<{ items: { sandbox_id: string }[] }>(200, 'GET', '/v1/sandboxes?limit=500')
      .catch(() => ({ items: [] }));
    for (const { sandbox_id } of page.items)
      await client.call('DELETE', `/v1/sandboxes/${sandbox_id}`).catch(() => {});
    client.close();
    await server.stop();
    removeDir(dir);
  }
}

/** Milliseconds of bare `crun run … true` of a living sandbox's own bundle, ascending. */
export function bareRuns(world: World, runs: number): number[] {
  const base = join(world.dir, 'local');
  const name = readdirSync(join(base, 'sandboxes'))[0];
  if (name === undefined) throw new Error('there is no sandbox whose bundle could be run');
  const config = JSON.parse(readFileSync(join(base, 'sandboxes', name, 'config.json'), 'utf8'));
  const skeleton = readdirSync(join(base, 'skeleton'))[0] ?? '';
  const bundle = join(world.dir, 'bare');
  for (const part of ['rootfs', 'upper', 'work', 'runtime'])
    mkdirSync(join(bundle, part), { recursive: true });
  for (const part of ['upper', 'work']) chownSync(join(bundle, part), STORAGE_RANGE, STORAGE_RANGE);
  const range = [{ containerID: 0, hostID: STORAGE_RANGE, size: 65_536 }];
  const plain = {
    ...config,
    process: { ...config.process, args: ['/bin/true'] },
    mounts: [
      ...config.mounts.filter(({ destination }: { destination: string }) => destination !== '/.init'),
      // Ours lies below a layer that can be written; the plainest way to have it is a bind mount.
      { destination: '/usr', source: '/usr', type: 'bind', options: ['bind', 'ro', 'nodev', 'idmap'] },
    ],
    linux: {
      ...config.linux,
      // Ours lies ready; bare, the runtime makes its own.
      namespaces: config.linux.namespaces.map(({ type }: { type: string }) => ({ type })),
      uidMappings: range,
      gidMappings: range,
    },
  };
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(plain));
  const helper = join(world.dir, 'bare-crun');
  const built = spawnSync(
    process.env.CC ?? 'cc',
    ['-O2', '-o', helper, join(import.meta.dirname, 'bare-crun.c')],
    {
      stdio: 'inherit',
    },
  );
  if (built.status !== 0) throw new Error('the baseline could not be compiled');
  const args = ['/usr/bin/crun', bundle, bundle, join(base, 'skeleton', skeleton), String(runs)];
  const { stdout, status } = spawnSync(helper, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('the baseline failed');
  return stdout
    .trim()
    .split('\n')
    .map(Number)
    .sort((a, b) => a - b);
}

export interface DockerBaseline {
  /** What the row says about it. */
  readonly note: string;
  /** Milliseconds of a docker command, ascending; `null` where there is no engine. */
  runs(times: number, ...args: string[]): number[] | null;
  output(...args: string[]): string;
  readonly image: string;
  close(): Promise<void>;
}

/** An engine of our own, in namespaces of its own: nobody's images and containers are touched. */
export async function dockerBaseline(): Promise<DockerBaseline> {
  const reason = whyNoDockerd();
  if (reason !== null) {
    return {
      note: `skipped: ${reason}`,
      runs: () => null,
      output: () => '',
      image: '',
      close: async () => {},
    };
  }
  const engine = await startDockerd();
  const docker = (args: string[]) => {
    const result = spawnSync('docker', ['-H', `unix://${engine.socket}`, ...args], { encoding: 'utf8' });
    if (result.status !== 0) throw new Error(`docker ${args.join(' ')} failed: ${result.stderr}`);
    return result.stdout.trim();
  };
  return {
    note: 'an engine of its own, --network none',
    image: engine.image,
    output: (...args) => docker(args),
    runs(times, ...args) {
      const samples: number[] = [];
      for (let run = 0; run < times; run++) {
        const begun = performance.now();
        docker(args);
        samples.push(performance.now() - begun);
      }
      return ascending(samples);
    },
    close: () => engine.close(),
  };
}

/** One row that says why there is no number. */
export function skipped(name: string, reason: string): Result[] {
  return [summarize({ name, unit: 'ms', samples: [0], details: { skipped: reason } })];
}

export function ascending(samples: readonly number[]): number[] {
  return [...samples].sort((a, b) => a - b);
}

export async function timed<T>(samples: number[], work: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work();
  samples.push(performance.now() - begun);
  return result;
}
