/** World of the benchmarks of ext.local: a server, a client, and a cleanup that removes everything. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  /** Directory of the server's files, as this process can reach it. */
  readonly state: string;
  readonly client: UnixClient;
  readonly pid: number;
  readonly socketPath: string;
  create(): Promise<string>;
  exec(id: string, command: readonly string[]): Promise<{ exit: { code: number }; stdout: string }>;
  destroy(id: string): Promise<void>;
}

/** Returns why nothing can be measured here, or `null`. */
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

/** Returns whether an image of this file system can be made and mounted here. */
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

export interface DockerBaseline {
  /** Note of the row. */
  readonly note: string;
  /** Returns the milliseconds of a docker command, ascending; `null` where there is no engine. */
  runs(times: number, ...args: string[]): number[] | null;
  output(...args: string[]): string;
  readonly image: string;
  close(): Promise<void>;
}

/** Engine of our own, in namespaces of its own: images and containers of this machine are not touched. */
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

/** Returns one row that says why there is no number. */
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
