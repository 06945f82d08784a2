/** Baseline of a sandbox's life, and a measure of this machine's present speed: bare `crun run … true`. */
import { execFile, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { STORAGE_RANGE } from '../../src/extensions/local/engine/uid-ranges.ts';
import { percentile } from '../harness.ts';
import type { World } from './world.ts';
import { ascending } from './world.ts';

const execute = promisify(execFile);

export interface BareCrun {
  /** Returns the milliseconds of each of `runs`, one after another. */
  times(runs: number): Promise<number[]>;
  /** Returns the number of runs that end in a second when each of `lanes` runs one after another. */
  perSecond(lanes: number, runsOfEach: number): Promise<number>;
}

/** Returns the baseline for the bundle of a sandbox in `world`, as the runtime alone would run it. */
export function bareCrun(world: World): BareCrun {
  const base = join(world.state, 'local');
  const name = readdirSync(join(base, 'sandboxes'))[0];
  if (name === undefined) throw new Error('there is no sandbox whose bundle could be run');
  const config = plainConfig(JSON.parse(readFileSync(join(base, 'sandboxes', name, 'config.json'), 'utf8')));
  const layer = join(base, 'skeleton', readdirSync(join(base, 'skeleton'))[0] ?? '');
  const helper = compiled(world.dir);
  const run = async (lane: number, runs: number): Promise<number[]> => {
    const bundle = join(world.dir, `bare${lane}`);
    writeBundle(bundle, config);
    const { stdout } = await execute(helper, ['/usr/bin/crun', bundle, bundle, layer, String(runs)]);
    return stdout.trim().split('\n').map(Number);
  };
  return {
    times: (runs) => run(0, runs),
    async perSecond(lanes, runsOfEach) {
      const begun = performance.now();
      await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane, runsOfEach)));
      return (lanes * runsOfEach) / ((performance.now() - begun) / 1000);
    },
  };
}

/** Returns the median of a few runs, for a row whose own baseline is another one. */
export async function machineSpeed(world: World, runs: number): Promise<{ bare_crun_ms: number }> {
  const sandbox = await world.create();
  const times = await bareCrun(world).times(runs);
  await world.destroy(sandbox);
  return { bare_crun_ms: Number(percentile(ascending(times), 50).toFixed(1)) };
}

interface Config {
  process: object;
  mounts: { destination: string }[];
  linux: { namespaces: { type: string }[] };
}

function plainConfig(config: Config): object {
  const range = [{ containerID: 0, hostID: STORAGE_RANGE, size: 65_536 }];
  return {
    ...config,
    process: { ...config.process, args: ['/bin/true'] },
    mounts: [
      ...config.mounts.filter(({ destination }) => destination !== '/.init'),
      // Our /usr lies below a writable layer; the plainest equivalent is a bind mount.
      { destination: '/usr', source: '/usr', type: 'bind', options: ['bind', 'ro', 'nodev', 'idmap'] },
    ],
    linux: {
      ...config.linux,
      // Our namespaces exist already; bare, the runtime makes its own.
      namespaces: config.linux.namespaces.map(({ type }) => ({ type })),
      uidMappings: range,
      gidMappings: range,
    },
  };
}

function writeBundle(bundle: string, config: object): void {
  for (const part of ['rootfs', 'upper', 'work', 'runtime'])
    mkdirSync(join(bundle, part), { recursive: true });
  for (const part of ['upper', 'work']) chownSync(join(bundle, part), STORAGE_RANGE, STORAGE_RANGE);
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
}

function compiled(dir: string): string {
  const helper = join(dir, 'bare-crun');
  const source = join(import.meta.dirname, 'bare-crun.c');
  const { status } = spawnSync(process.env.CC ?? 'cc', ['-O2', '-o', helper, source], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the baseline could not be compiled');
  return helper;
}
