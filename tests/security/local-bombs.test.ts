/** A sandbox that takes all it can get: it suffers, its neighbours and the machine do not. */
import { spawnSync } from 'node:child_process';
import { freemem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resources } from '../../src/contract/profiles/profile.ts';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { spawnSpec } from '../../src/testing/conformance/run-program.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const world = new LocalWorld();
const before = hostCanary(world.base);
const NONE: Resources = {
  cpu: null,
  memory_mb: null,
  disk_mb: null,
  pids: null,
  open_files: null,
  gpu: null,
};
const LIMITED = { ...NONE, memory_mb: 128, pids: 100, disk_mb: 64, open_files: 256, cpu: 1 };
const enforced = world.extension.header.capabilities.resources;
const lacking = (['memory_mb', 'pids', 'disk_mb', 'cpu'] as const).filter((name) => !enforced.includes(name));
const reason =
  (await world.whyNot()) ?? (lacking.length > 0 ? `not enforced here: ${lacking.join(', ')}` : null);

describe.skipIf(reason !== null)(`ext.local bounds${reason === null ? '' : ` (${reason})`}`, () => {
  let neighbour: Living;
  let bomber: Living;

  beforeAll(async () => {
    neighbour = await world.establish();
    bomber = await world.establish({ resources: LIMITED });
  });

  afterAll(async () => {
    await world.close();
    expect(hostCanary(world.base)).toBe(before);
  });

  /** While and after: the neighbour answers, and so does the one that did it. */
  async function bombed(script: string, user: string | null = null): ReturnType<typeof shell> {
    const work = shell(bomber.session, script, user);
    const begun = Date.now();
    expect((await shell(neighbour.session, 'echo fine')).stdout).toBe('fine\n');
    expect(Date.now() - begun).toBeLessThan(60_000);
    const result = await work;
    await sleep(200);
    for (let tries = 0; ; tries++) {
      const again = await shell(bomber.session, 'echo alive').catch(() => ({ stdout: '' }));
      if (again.stdout === 'alive\n') return result;
      if (tries > 300) throw new Error('it does not answer any more');
      await sleep(200);
    }
  }

  it('ext.local bounds forks', async () => {
    const { stdout } = await bombed(
      'i=0; while [ $i -lt 400 ]; do (sleep 2 &) 2>/dev/null; i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l; true',
    );
    expect(Number(stdout.trim().split('\n').at(-1) || 0)).toBeLessThanOrEqual(101);
    // Until they have ended nothing else can be started in there.
    const inside = async () => (await shell(bomber.session, 'ls -d /proc/[0-9]* | wc -l')).stdout;
    await expect.poll(async () => Number(await inside()) || 100, { timeout: 60_000 }).toBeLessThan(10);
  });

  it('ext.local bounds memory', async () => {
    const free = freemem();
    const { exit } = await bombed('exec perl -e \'$x = "x" x (400 << 20); print length $x\'');
    expect(exit).toEqual({ code: 137, signal: 'SIGKILL', timed_out: false, out_of_memory: true });
    await expect.poll(() => free - freemem(), { timeout: 60_000 }).toBeLessThan(512 << 20);
  });

  it('memory by way of files in /dev/shm and /tmp', async () => {
    const { stdout } = await bombed(
      'dd if=/dev/zero of=/dev/shm/big bs=1M count=400 2>&1 | tail -1; rm -f /dev/shm/big; echo done',
    );
    expect(stdout).toMatch(/done\n$/);
  });

  it('ext.local bounds disk', async () => {
    const { stdout } = await bombed(
      'dd if=/dev/zero of=big bs=1M count=400 2>&1 | grep -c "No space"; rm -f big; echo left > small && cat small',
    );
    expect(stdout).toBe('1\nleft\n');
  });

  it('ext.local bounds inodes', async () => {
    const script =
      'mkdir i; cd i; n=0; while :; do n=$((n+1)); true 2>/dev/null > f$n || break; [ $n -lt 200000 ] || break; done; cd ..; rm -rf i; [ $n -lt 200000 ] && echo bounded';
    expect((await bombed(script)).stdout).toBe('bounded\n');
  });

  it('ext.local bounds descriptors', async () => {
    const { stdout } = await bombed(
      'exec 2>/dev/null; python3 -c "\nimport os\nn=0\ntry:\n  while True: os.dup(0); n+=1\nexcept OSError: print(n < 300)\n" || echo True',
    );
    expect(stdout).toBe('True\n');
  });

  /** Perl is on every machine with Debian on it, and has `syscall`. */
  const calls = (number: number, args: string, count: number, then: string) =>
    `perl -e 'my $n = 0; while ($n < ${count}) { last if syscall(${number}, ${args}) < 0; $n++ } $| = 1; print "$n\\n"; ${then}'`;
  const x64 = process.arch === 'x64';

  it.skipIf(!x64)('ext.local bounds what the kernel counts by user: watches of files', async () => {
    const own = await world.establish();
    const greedy = shell(own.session, calls(294, '0', 1_000, 'sleep 3'));
    await sleep(1_000);
    // Neither its neighbours nor the root of this machine have less for it.
    expect((await shell(neighbour.session, calls(294, '0', 20, ''))).stdout).toBe('20\n');
    const here = spawnSync('perl', [
      '-e',
      'my $n = 0; while ($n < 20) { last if syscall(294, 0) < 0; $n++ } print $n',
    ]);
    expect(String(here.stdout)).toBe('20');
    expect(Number((await greedy).stdout)).toBeGreaterThan(20);
    await world.end(own);
  });

  it.skipIf(!x64)(
    'ext.local bounds what the machine counts as a whole: queues of asynchronous files, and terminals',
    async () => {
      const queue = 'my $c = pack("Q", 0); my $r = syscall(206, 8192, $c); print $r < 0 ? "none" : "some"';
      expect((await shell(bomber.session, `perl -e '${queue}'`)).stdout).toBe('none');
      const own = await world.establish();
      const greedy = shell(
        own.session,
        `perl -e 'my @f; while (@f < 600) { open(my $f, "+<", "/dev/ptmx") or last; push @f, $f } print scalar @f'`,
      );
      expect(Number((await greedy).stdout)).toBeLessThanOrEqual(128);
      await world.end(own);
    },
  );

  it('ext.local bounds zombies', async () => {
    const script =
      'perl -e "for (1..300) { my \\$p = fork; exit 0 if defined \\$p && !\\$p; } sleep 1" 2>/dev/null; true';
    await bombed(script);
    const count = 'grep -l "State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l';
    const left = async () => Number((await shell(bomber.session, count)).stdout);
    await expect.poll(left, { timeout: 60_000 }).toBeLessThan(5);
  });

  it('ext.local bounds unread output', async () => {
    const flood = await bomber.session.spawn(spawnSpec(['/bin/sh', '-c', 'yes flood']));
    // What is taken from it is bounded: at some time it rests.
    const grown = async () => {
      const before = process.memoryUsage().rss;
      await sleep(1_000);
      return process.memoryUsage().rss - before;
    };
    await expect.poll(grown, { timeout: 60_000 }).toBeLessThan(4 << 20);
    await flood.detach();
    expect((await shell(bomber.session, 'echo alive')).stdout).toBe('alive\n');
  });

  it('ext.local bounds arguments and environment that are too large', async () => {
    const argv = ['/bin/echo', ...Array.from({ length: 2_000 }, () => 'x'.repeat(1_500))];
    const run = async () => {
      const process = await bomber.session.spawn(spawnSpec(argv));
      for await (const _ of process.output);
      return (await process.exit).code;
    };
    expect(await run().catch(() => 126)).not.toBe(0);
    expect((await shell(bomber.session, 'echo alive')).stdout).toBe('alive\n');
  });

  it('an environment that is too large', async () => {
    const env = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`V${n}`, 'x'.repeat(1_500)]));
    const run = async () => {
      const process = await bomber.session.spawn({ ...spawnSpec(['/bin/true']), env });
      for await (const _ of process.output);
      return (await process.exit).code;
    };
    expect(await run().catch(() => 126)).not.toBe(0);
    expect((await shell(bomber.session, 'echo alive')).stdout).toBe('alive\n');
  });

  it('ext.local bounds a slow reader: the program waits, and no other does', async () => {
    const memory = process.memoryUsage().rss;
    const slow = await bomber.session.spawn(
      spawnSpec(['/bin/sh', '-c', 'head -c 30000000 /dev/zero; echo done >&2']),
    );
    let bytes = 0;
    let taken = 0;
    for await (const chunk of slow.output) {
      if (chunk.stream === 'stdout') bytes += chunk.data.length;
      if (taken++ < 20) await sleep(50);
      else if (taken === 21) expect((await shell(bomber.session, 'echo alive')).stdout).toBe('alive\n');
    }
    expect(bytes).toBe(30_000_000);
    expect((await slow.exit).code).toBe(0);
    expect(process.memoryUsage().rss - memory).toBeLessThan(96 << 20);
  });

  it('killing everything it can', async () => {
    await bombed('kill -9 -1; kill -9 1; true', 'root').catch(() => {});
    expect((await shell(bomber.session, 'echo alive')).stdout).toBe('alive\n');
  });
});
