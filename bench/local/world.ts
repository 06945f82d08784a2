/** What every benchmark of ext.local needs: a server, a client, and a way to leave nothing behind. */
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SpawnerClient } from '../../src/extensions/local/spawner-client.ts';
import { STORAGE_RANGE } from '../../src/extensions/local/uid-ranges.ts';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
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
  readonly client: UnixClient;
  readonly pid: number;
  readonly socketPath: string;
  create(): Promise<string>;
  exec(id: string, command: readonly string[]): Promise<{ exit: { code: number }; stdout: string }>;
  destroy(id: string): Promise<void>;
}

/** Ends the spawner, which would linger for a minute. */
async function retire(dir: string): Promise<void> {
  const path = join(dir, 'local', 'spawner.sock');
  const spawner = await SpawnerClient.open(path, () => {}).catch(() => null);
  await spawner?.call('retire').catch(() => {});
  spawner?.close();
  for (let tries = 0; tries < 400 && existsSync(path); tries++) await sleep(25);
}

/** Why nothing can be measured here, or `null`. */
export function whyNot(): string | null {
  if (process.platform !== 'linux') return 'not Linux';
  if (process.getuid?.() !== 0) return 'not root: limits are part of what is measured';
  return null;
}

export async function withWorld(
  config: Record<string, unknown>,
  connections: number,
  work: (world: World) => Promise<Result[]>,
): Promise<Result[]> {
  const dir = temporaryDir();
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ extensions: { local: { enabled: true, ...config } } }),
  );
  const server = await startChild(join(import.meta.dirname, 'local-server.ts'), dir, {
    SANDBOXER_LOCAL: '1',
    SANDBOXER_CONFIG: join(dir, 'config.json'),
  });
  const client = new UnixClient(server.socketPath, connections);
  try {
    await client.expect(201, 'POST', '/v1/profiles', LIMITED);
    const world: World = {
      dir,
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
    await retire(dir);
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
    mounts: config.mounts.filter(({ destination }: { destination: string }) => destination !== '/.init'),
    linux: { ...config.linux, uidMappings: range, gidMappings: range },
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

const DOCKER_IMAGE = 'busybox';

/** Why there is no docker row, or `null`. */
export function whyNoDocker(): string | null {
  const { status } = spawnSync('docker', ['image', 'inspect', DOCKER_IMAGE], { stdio: 'ignore' });
  if (status === 0) return null;
  const running = spawnSync('docker', ['info'], { stdio: 'ignore' }).status === 0;
  return running ? `no image ${DOCKER_IMAGE}: skipped` : 'docker not running: skipped';
}

/** Milliseconds of a docker command, ascending; `null` where there is no docker. */
export function dockerRuns(runs: number, ...args: string[]): number[] | null {
  if (whyNoDocker() !== null) return null;
  const samples: number[] = [];
  for (let run = 0; run < runs; run++) {
    const begun = performance.now();
    if (spawnSync('docker', args, { stdio: 'ignore' }).status !== 0)
      throw new Error(`docker ${args.join(' ')} failed`);
    samples.push(performance.now() - begun);
  }
  return ascending(samples);
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
