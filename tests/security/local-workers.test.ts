/** What workers of the spawner may do while they read what a stranger wrote: the kernel is asked, and calls are tried. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../src/extensions/local/engine/spawner-client.ts';
import { childrenOf, signal } from '../integration/local/killable-server.ts';
import { tarOf } from '../support/image-archives.ts';
import { until } from '../support/until.ts';
import { LocalWorld } from './local-world.ts';

const world = new LocalWorld({ warm: 0 });
const reason =
  process.getuid?.() !== 0
    ? 'the spawner has capabilities of the machine only as root'
    : process.arch !== 'x64'
      ? 'the numbers of the probe are those of x86-64'
      : await world.whyNot();
const SPAWNER = join(import.meta.dirname, '..', '..', 'agent', 'spawner');

const BITS = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  DAC_READ_SEARCH: 2,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  SYS_CHROOT: 18,
  SYS_ADMIN: 21,
  MKNOD: 27,
  SETFCAP: 31,
} as const;
type Capability = keyof typeof BITS;
const maskOf = (names: readonly Capability[]) =>
  names.reduce((mask, name) => mask | (1n << BigInt(BITS[name])), 0n);

const FILES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID'] as const;
/** In the order of `enum duty`. */
const DUTIES: Record<string, readonly Capability[]> = {
  unpack: FILES,
  'unpack with marks': [...FILES, 'MKNOD', 'SYS_ADMIN'],
  pack: ['DAC_READ_SEARCH', 'SYS_ADMIN'],
  read: ['DAC_READ_SEARCH'],
  copy: [...FILES, 'MKNOD', 'SETUID', 'SETGID', 'SETPCAP', 'SETFCAP', 'SYS_ADMIN'],
  remove: ['DAC_OVERRIDE', 'FOWNER'],
  mount: [
    ...FILES,
    'DAC_READ_SEARCH',
    'MKNOD',
    'SETFCAP',
    'SYS_ADMIN',
    'SYS_CHROOT',
    'SETUID',
    'SETGID',
    'KILL',
  ],
};
const MOUNTING = [
  'mount',
  'umount2',
  'move_mount',
  'open_tree',
  'mount_setattr',
  'fsopen',
  'setns',
  'unshare',
  'chroot',
];

/** What the kernel says of a process. */
function held(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const word = (name: string) => new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(status)?.[1] ?? '';
  return {
    effective: BigInt(`0x${word('CapEff')}`),
    permitted: BigInt(`0x${word('CapPrm')}`),
    inheritable: BigInt(`0x${word('CapInh')}`),
    ambient: BigInt(`0x${word('CapAmb')}`),
    bounding: BigInt(`0x${word('CapBnd')}`),
    noNewPrivileges: word('NoNewPrivs'),
    seccomp: word('Seccomp'),
    network: readlinkSync(`/proc/${pid}/ns/net`),
  };
}

describe.skipIf(reason !== null)(`workers of the spawner${reason === null ? '' : ` (${reason})`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxer-workers-'));
  const ownNetwork = readlinkSync('/proc/self/ns/net');
  let spawner: SpawnerClient;
  let spawnerPid: number;

  beforeAll(async () => {
    await world.end(await world.establish());
    spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
    spawnerPid = await world.spawnerPid();
    mkdirSync(join(world.base, 'layers', 'w'));
  });
  afterAll(async () => {
    spawner.close();
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function expectConfined(pid: number, duty: string, root: string): void {
    const found = held(pid);
    expect(readlinkSync(`/proc/${pid}/root`)).toBe(root);
    const mask = maskOf(DUTIES[duty] ?? []);
    expect(found).toEqual({
      effective: mask,
      permitted: mask,
      inheritable: 0n,
      ambient: 0n,
      bounding: mask,
      noNewPrivileges: '1',
      seccomp: '2',
      network: readlinkSync(`/proc/${spawnerPid}/ns/net`),
    });
    expect(found.network).not.toBe(ownNetwork);
  }

  async function worker(name: string): Promise<number> {
    await until(() => childrenOf(spawnerPid, name).length === 1);
    return childrenOf(spawnerPid, name)[0] as number;
  }

  for (const marks of [0, 1]) {
    const duty = marks ? 'unpack with marks' : 'unpack';
    it(`${duty}: confined in the middle of an archive`, async () => {
      const path = join(world.base, 'layers', 'w', `waits-${marks}`);
      execFileSync('mkfifo', [path]);
      const pipe = openSync(path, 'r+');
      const from = `layers/w/waits-${marks}`;
      const fields = { from, to: `${from}.layer`, entries: 10, bytes: 1 << 20, marks };
      const done = spawner.call('unpack', fields).catch((error: Error) => error.message);
      writeSync(pipe, tarOf([{ name: 'file', body: Buffer.alloc(9000) }]).subarray(0, 4096));
      await until(() => readdirSync(join(world.base, 'layers', 'w')).includes(`waits-${marks}.layer`));
      const pid = await worker('sbx-unpack');
      // It has begun to write: what it was to lose is lost.
      await until(() => readdirSync(join(world.base, `${from}.layer`)).includes('file'));
      expectConfined(pid, duty, join(world.base, `${from}.layer`));
      signal(pid, 'SIGKILL');
      expect(await done).toBe('Input/output error');
      closeSync(pipe);
    });
  }

  it('pack: confined while its bytes are on their way', async () => {
    mkdirSync(join(world.base, 'layers', 'w', 'packed'));
    writeFileSync(join(world.base, 'layers', 'w', 'packed', 'large'), Buffer.alloc(8 << 20, 1));
    let bytes = 0;
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      server.emit('called', socket);
      socket.on('data', (part) => {
        bytes += part.length;
      });
    });
    server.listen(join(world.base, 'p.sock'));
    const called = new Promise<{ resume(): void }>((resolve) => server.once('called', resolve));
    const done = spawner.call('pack', { layer: 'layers/w/packed', to: 'p.sock' });
    const socket = await called;
    const pid = await worker('sbx-pack');
    await until(() => held(pid).seccomp === '2');
    expectConfined(pid, 'pack', join(world.base, 'layers', 'w', 'packed'));
    socket.resume();
    expect(await done).toMatchObject({ files: '1' });
    await until(() => bytes > 8 << 20);
    server.close();
  });

  it('copy: confined while it copies', async () => {
    for (const layer of ['low', 'high']) {
      mkdirSync(join(world.base, 'layers', 'w', layer));
      for (let n = 0; n < 3000; n++)
        writeFileSync(join(world.base, 'layers', 'w', layer, `${layer}-${n}`), 'x'.repeat(2000));
    }
    const done = spawner.call('flatten', {
      layers: 'layers/w/high:layers/w/low',
      host: '',
      to: 'layers/w/flat',
    });
    const flat = join(world.base, 'layers', 'w', 'flat');
    const made = () => spawnSync('ls', [flat], { encoding: 'utf8' }).stdout.includes('-');
    const pid = await worker('sbx-copy');
    await until(made);
    signal(pid, 'SIGSTOP');
    expectConfined(pid, 'copy', world.base);
    signal(pid, 'SIGCONT');
    await done;
    expect(readdirSync(flat)).toHaveLength(6000);
  });

  it('janitor, mounters: confined as long as they live', () => {
    const janitors = childrenOf(spawnerPid, 'sbx-janitor');
    const mounters = childrenOf(spawnerPid, 'sbx-mounter');
    expect([janitors.length, mounters.length]).toEqual([1, 2]);
    for (const pid of janitors) expectConfined(pid, 'remove', '/');
    for (const pid of mounters) expectConfined(pid, 'mount', '/');
  });

  it('spawner: no network, and none of the capabilities that no runtime needs', () => {
    const { effective, bounding, network } = held(spawnerPid);
    expect(network).not.toBe(ownNetwork);
    // SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, SYSLOG.
    for (const bit of [16n, 17n, 22n, 25n, 34n]) {
      expect((effective >> bit) & 1n).toBe(0n);
      expect((bounding >> bit) & 1n).toBe(0n);
    }
    const interfaces = execFileSync('nsenter', ['-t', String(spawnerPid), '-n', 'cat', '/proc/net/dev']);
    expect(interfaces.toString().match(/^ *\w+:/gm)).toEqual([expect.stringMatching(/lo:/)]);
  });

  describe('a worker that calls what it should not', () => {
    const probe = join(folder, 'probe');

    beforeAll(() => {
      const parts = globSync('**/{confine,capabilities,subvolume}.c', { cwd: SPAWNER }).map((name) =>
        join(SPAWNER, name),
      );
      const source = join(import.meta.dirname, 'worker-probe.c');
      execFileSync('cc', ['-std=gnu11', '-O1', '-o', probe, source, ...parts], { stdio: 'inherit' });
    });

    function tried(duty: string, ...more: string[]): Map<string, string> {
      const guard = ['--mount', '--pid', '--net', '--uts', '--ipc', '--fork', '--kill-child', '--mount-proc'];
      const number = String(Object.keys(DUTIES).indexOf(duty));
      const output = execFileSync('unshare', [...guard, probe, number, ...more], {
        cwd: folder,
        encoding: 'utf8',
      });
      return new Map(
        output
          .trim()
          .split('\n')
          .map((line) => line.split('\t') as [string, string]),
      );
    }

    for (const duty of Object.keys(DUTIES)) {
      it(`${duty}: sockets, processes, tracing, modules, keys${duty === 'mount' ? '' : ', mounts, devices, others’ limits and signals'}: killed`, () => {
        const results = tried(duty);
        expect(results.size).toBeGreaterThan(40);
        const allowed = duty === 'mount' ? MOUNTING : [];
        const alive = [...results].filter(([name, result]) => result !== 'killed' && !allowed.includes(name));
        expect(alive).toEqual([]);
      });
    }

    it('a worker reaches the kernel with fewer than 130 of all call numbers', () => {
      const numbers = [...tried('copy', 'all')].filter(([name]) => /^\d+$/.test(name));
      expect(numbers).toHaveLength(600);
      const reached = numbers.filter(([, result]) => result === 'reached');
      expect(reached.length).toBeGreaterThan(60);
      expect(reached.length).toBeLessThan(130);
      expect(numbers.filter(([, result]) => result.startsWith('not'))).toEqual([]);
    });
  });
});
