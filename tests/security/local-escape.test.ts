/** Ways out that need more than one call: each is tried from inside, and what it would have reached is looked at outside. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TarEntry } from '../../src/archive/tar/format.ts';
import { writeTreeArchive } from '../../src/core/assets/tree-archive.ts';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { runProgram } from '../../src/testing/conformance/run-program.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

process.env.SSH_AUTH_SOCK ??= '/tmp/agent-of-the-host';
const world = new LocalWorld();
const before = hostCanary(world.base);
const reason =
  (await world.whyNot()) ?? (existsSync('/usr/bin/python3') ? null : 'there is no python3 to try with');
const BINARIES = ['/usr/bin/crun', join(import.meta.dirname, '../../agent/build/sandboxer-agent')];

function digests(): string[] {
  return BINARIES.filter((path) => existsSync(path)).map((path) =>
    createHash('sha256').update(readFileSync(path)).digest('hex'),
  );
}

function withoutGroups(canary: string): string {
  return canary.replace(/"groups":[^\]]*\]/, '').replace(/"loops":[^\]]*\]/, '');
}

async function listening(where: number | string): Promise<Server> {
  const server = createServer((socket) => socket.end('reached'));
  await new Promise<void>((resolve) => {
    if (typeof where === 'number') server.listen(where, '127.0.0.1', resolve);
    else server.listen(where, resolve);
  });
  return server;
}

describe.skipIf(reason !== null)(`ways out of ext.local${reason === null ? '' : ` (${reason})`}`, () => {
  let living: Living;
  const binaries = digests();

  const python = (script: string, user: string | null = null) =>
    runProgram(living.session, ['/usr/bin/python3', '-c', script], { user, timeoutSeconds: 60 });

  beforeAll(async () => {
    living = await world.establish();
  });

  beforeEach(() => {
    expect(withoutGroups(hostCanary(world.base))).toBe(withoutGroups(before));
  });

  afterAll(async () => {
    await world.close();
    expect(hostCanary(world.base)).toBe(before);
    expect(digests()).toEqual(binaries);
  });

  it('the loopback and the abstract sockets of the host are not its own', async () => {
    const tcp = await listening(0);
    const name = `sandboxer-test-${process.pid}`;
    const abstract = await listening(`\0${name}`);
    const { port } = tcp.address() as AddressInfo;
    try {
      for (const user of ['user', 'root']) {
        const { stdout } = await python(
          `
import socket
def tried(family, address):
    try:
        s = socket.socket(family); s.settimeout(2); s.connect(address); return "open"
    except OSError as e: return "closed"
print(tried(socket.AF_INET, ("127.0.0.1", ${port})), tried(socket.AF_UNIX, "\\0${name}"))`,
          user,
        );
        expect(stdout.toString()).toBe('closed closed\n');
      }
    } finally {
      tcp.close();
      abstract.close();
    }
  });

  it('tables of the kernel are masked, and its settings cannot be written', async () => {
    const { stdout } = await shell(
      living.session,
      'cat /proc/kallsyms /proc/kcore /proc/keys /proc/timer_list 2>/dev/null | wc -c; for f in /proc/sys/kernel/core_pattern /proc/sys/vm/overcommit_memory /proc/sysrq-trigger /sys/kernel/uevent_helper; do (echo x > $f) 2>/dev/null && echo open $f; done; true',
      'root',
    );
    expect(stdout).toBe('0\n');
  });

  it('a set-uid file of its root belongs outside to neither root nor the server’s user, and gives root inside', async () => {
    await shell(living.session, 'cp /bin/cat /var/tmp/as-root; chmod 4755 /var/tmp/as-root', 'root');
    const { stdout } = await shell(living.session, '/var/tmp/as-root /proc/self/status');
    expect(stdout).toMatch(/^Uid:\s+1000\s+0\s/m);
    expect(stdout).toMatch(/^CapBnd:\s+00000000a00405fb/m);
    expect(stdout).toMatch(/^Seccomp:\s+2/m);
    const { attemptId } = living.spec.stamp;
    const { uid, mode } = lstatSync(join(world.base, 'sandboxes', attemptId, 'disk/upper/var/tmp/as-root'));
    expect(mode & 0o4000).toBe(0o4000);
    expect(uid).not.toBe(0);
    expect(uid).not.toBe(process.getuid?.());
  });

  it('capabilities of a file give what root inside has, and nothing outside', async () => {
    // Version 2 of the attribute, as setcap writes it: effective, with one capability.
    const attribute = (bit: number) => `struct.pack("<5I", 0x02000001, ${bit < 32 ? 1 << bit : 0}, 0, 0, 0)`;
    const [SETUID, SYS_ADMIN] = [7, 21];
    const put = (name: string, bit: number) =>
      python(
        `import os, shutil, struct; shutil.copy("/bin/cat", "/var/tmp/${name}"); os.chmod("/var/tmp/${name}", 0o755); os.setxattr("/var/tmp/${name}", "security.capability", ${attribute(bit)})`,
        'root',
      );
    expect((await put('able', SETUID)).exit.code).toBe(0);
    expect((await shell(living.session, '/var/tmp/able /proc/self/status')).stdout).toMatch(
      /^CapEff:\s+0+80$/m,
    );
    await put('mighty', SYS_ADMIN);
    const { stdout } = await shell(
      living.session,
      '/var/tmp/mighty /proc/self/status 2>/dev/null || echo refused',
    );
    expect(stdout).not.toMatch(/^CapEff:\s+0*200000$/m);
    // On the disk of the host it names the root of the sandbox: there it is worth nothing.
    const path = join(world.base, 'sandboxes', living.spec.stamp.attemptId, 'disk/upper/var/tmp/able');
    const found = execFileSync(
      'python3',
      [
        '-c',
        `import os, struct; print(*struct.unpack("<6I", os.getxattr(${JSON.stringify(path)}, "security.capability")))`,
      ],
      { encoding: 'utf8' },
    ).split(' ');
    expect(Number(found[0]) >>> 24).toBe(3);
    expect(Number(found[5])).toBeGreaterThan(0);
  });

  it('a program that is on no disk is held by the same walls', async () => {
    const { stdout } = await python(`
import os
fd = os.memfd_create("x")
with open("/bin/cat", "rb") as f: os.write(fd, f.read())
os.execv(f"/proc/self/fd/{fd}", ["cat", "/proc/self/status"])`);
    expect(stdout.toString()).toMatch(/^CapEff:\s+0+$/m);
    expect(stdout.toString()).toMatch(/^Seccomp:\s+2$/m);
  });

  it('programs of a sandbox die before those of the host when memory is short, and cannot protect themselves', async () => {
    for (const user of ['user', 'root']) {
      const { stdout } = await shell(
        living.session,
        'sleep 0.5; cat /proc/$$/oom_score_adj; echo -1000 > /proc/$$/oom_score_adj; cat /proc/$$/oom_score_adj',
        user,
      );
      for (const line of stdout.trim().split('\n')) expect(Number(line)).toBeGreaterThanOrEqual(500);
    }
  });

  it('a program that runs into its time leaves nothing behind, however it hid', async () => {
    const hidden =
      'setsid sh -c "sleep 987 & sleep 987" & (nohup sleep 987 >/dev/null 2>&1 &); trap "" TERM HUP INT; sleep 987';
    const { exit } = await runProgram(living.session, ['/bin/sh', '-c', hidden], { timeoutSeconds: 1 });
    expect(exit.timed_out).toBe(true);
    const { stdout } = await shell(
      living.session,
      'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "[s]leep 987"',
    );
    expect(stdout).toBe('0\n');
  });

  it('a directory that becomes a link while files go in leads nowhere', async () => {
    await shell(living.session, 'rm -rf swap other; mkdir swap other');
    const swapper = await living.session.spawn({
      argv: ['/bin/sh', '-c', 'while :; do mv swap away && ln -s /etc swap; rm -f swap; mv away swap; done'],
      env: {},
      cwd: null,
      user: 'root',
      timeoutSeconds: 60,
      terminal: null,
      stdin: false,
      background: true,
    });
    const entries = async function* (): AsyncGenerator<TarEntry> {
      const body = async function* () {
        yield Buffer.from('x');
      };
      const file = { kind: 'file' as const, mode: 0o644, modifiedAtMs: 0, linkTarget: null, size: 1 };
      yield { ...file, name: 'swap/written-through', body: body() };
    };
    for (let n = 0; n < 60; n++) {
      await living.session.files?.upload('.', writeTreeArchive(entries())).catch(() => {});
      await living.session.files?.write('swap/written-through', writeTreeArchive(entries())).catch(() => {});
    }
    await swapper.kill('SIGKILL');
    expect(existsSync('/etc/written-through')).toBe(false);
  });

  it('text of a request becomes no part of the configuration', async () => {
    const variables = { A: '"},"mounts":[{"source":"/"}],"x":{"', B: 'a\nPATH=/evil', C: '$(id)`id`' };
    const odd = await world.establish({ variables }, { sandboxId: '../../etc', labels: { 'a/../b': '"\n' } });
    const { stdout } = await shell(odd.session, 'printf "%s|%s|%s" "$A" "$B" "$C"; ls /mnt | wc -l');
    expect(stdout).toBe(`${variables.A}|${variables.B}|${variables.C}0\n`);
    const base = world.spec();
    const stamp = { ...base.stamp, attemptId: '../../escaped' };
    const spec = { ...base, stamp };
    const handle = await world.extension.provision(spec, world.context);
    const named = await world.open(spec, handle);
    expect(existsSync(join(world.base, '..', 'escaped'))).toBe(false);
    await world.end(named);
    await world.end(odd);
  });

  it('a sandbox gets nothing of the environment of this server', async () => {
    const { stdout } = await shell(living.session, 'env | cut -d= -f1 | sort', 'root');
    const names = stdout.trim().split('\n');
    expect(names).not.toContain('SSH_AUTH_SOCK');
    const allowed = [
      'SANDBOXER_PROCESS',
      'HOME',
      'LC_CTYPE',
      'LOGNAME',
      'OLDPWD',
      'PATH',
      'PWD',
      'SHELL',
      'SHLVL',
      'TERM',
      'USER',
      '_',
    ];
    expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
  });

  it('the agent’s file and socket, changed by a sandbox, affect that sandbox alone', async () => {
    const trap = join(world.directory, 'outside');
    writeFileSync(trap, 'untouched');
    const { stdout } = await shell(
      living.session,
      'for p in /proc/1/root /proc/1/cwd /proc/self/root; do ls $p/../../../../..' +
        world.directory +
        ' 2>/dev/null; done; cat /proc/1/environ /proc/1/maps /proc/1/mem 2>/dev/null | wc -c; ls /proc/1/fd 2>/dev/null | wc -l',
      'root',
    );
    expect(stdout).toBe('0\n0\n');
    expect(readFileSync(trap, 'utf8')).toBe('untouched');
  });
});
