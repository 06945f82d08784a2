/** How a sandbox on this machine is seen from outside, and the host from inside; the host is compared before and after. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const world = new LocalWorld();
const before = hostCanary(world.base);
const folder = mkdtempSync(join(tmpdir(), 'sandboxer-trap-'));
const reason = await world.whyNot();

describe.skipIf(reason !== null)(`ext.local holds${reason === null ? '' : ` (${reason})`}`, () => {
  let living: Living;

  beforeAll(async () => {
    living = await world.establish();
  });

  afterAll(async () => {
    await world.close();
    rmSync(folder, { recursive: true });
    expect(hostCanary(world.base)).toBe(before);
  });

  it('ext.local never runs as root outside, nor as the user of this server', async () => {
    const { stdout } = await shell(
      living.session,
      'cat /proc/self/uid_map; id -u; grep -E "^(Cap|Seccomp|NoNew)" /proc/self/status',
    );
    const [map = '', uid] = stdout.split('\n');
    expect(uid).toBe('1000');
    const [inside, outside] = map.trim().split(/\s+/).map(Number);
    expect(inside).toBe(0);
    expect(outside).not.toBe(0);
    expect(stdout).toMatch(/CapEff:\s+0+\n/);
    expect(stdout).toMatch(/CapBnd:\s+00000000a00405fb/);
    expect(stdout).toMatch(/Seccomp:\s+2/);
    const root = await shell(living.session, 'grep CapEff /proc/self/status', 'root');
    expect(root.stdout).toMatch(/00000000a00405fb/);
  });

  it('sudo gives root inside, and no more', async () => {
    const { stdout, stderr } = await shell(
      living.session,
      'sudo -n id -u; sudo -n sh -c "echo x > /etc/by-sudo"; cat /etc/by-sudo; sudo -n mount -t tmpfs none /mnt 2>&1 || echo refused',
    );
    expect(stdout, stderr).toMatch(/^0\nx\n/);
    expect(stdout).toMatch(/refused\n$/);
  });

  it('a sandbox has nothing of the host: no account, no secret, no socket, no path', async () => {
    const script =
      'cat /etc/passwd; ls -a /root /home /var/lib /var/log /run /srv /opt /mnt 2>/dev/null; env; cat /proc/self/mountinfo /proc/mounts; cat /proc/net/unix';
    const { stdout } = await shell(living.session, script, 'root');
    expect(stdout).not.toContain(world.directory);
    expect(stdout).not.toContain(process.cwd());
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [name, , uid] = line.split(':');
      if (Number(uid) >= 1000 && name !== 'nobody') expect(stdout).not.toContain(`${name}:x:`);
    }
    const shadow = readFileSync('/etc/shadow', 'utf8')
      .split('\n')
      .map((line) => line.split(':')[1] ?? '')
      .filter((hash) => hash.length > 8);
    for (const hash of shadow) expect(stdout).not.toContain(hash);
  });

  it('two sandboxes share nothing: neither ids, files, processes nor names', async () => {
    const other = await world.establish();
    await shell(living.session, 'echo mine > /tmp/mine; sleep 30 >/dev/null 2>&1 &');
    const { stdout } = await shell(
      other.session,
      'ls /tmp; ps -e 2>/dev/null || ls /proc; cat /proc/self/uid_map',
      'root',
    );
    expect(stdout).not.toContain('mine');
    expect(stdout).not.toContain('sleep');
    const map = (await shell(living.session, 'cat /proc/self/uid_map')).stdout;
    if (process.getuid?.() === 0) expect(stdout).not.toContain(map.trim());
    await world.end(other);
  });

  it('loopback works inside and leads nowhere else', async () => {
    const { stdout } = await shell(
      living.session,
      'ls /sys/class/net; cat /proc/net/route | wc -l; cat /proc/net/dev | grep -c :',
      'root',
    );
    expect(stdout).toBe('lo\n1\n1\n');
  });

  it('a device that is put into a snapshot is no device in what is made of it', async () => {
    const source = await world.establish();
    await shell(source.session, 'echo kept > kept; mkfifo pipe; ln -s /etc/shadow link');
    await shell(source.session, 'rm /etc/hosts', 'root');
    const spec = { snapshotId: 'snap_security', name: null, owner: 'local-tests' };
    const { ref } = await world.extension.snapshot(source.handle, spec);
    const restoredSpec = world.spec();
    const restored = await world.open(
      restoredSpec,
      await world.extension.restore(restoredSpec, ref, world.context),
    );
    const { stdout } = await shell(
      restored.session,
      'cat kept; test -p pipe && echo pipe; readlink link; test -e /etc/hosts || echo removed; find / -xdev \\( -type b -o -type c \\) 2>/dev/null',
      'root',
    );
    expect(stdout).toBe('kept\npipe\n/etc/shadow\nremoved\n');
    await world.extension.deleteSnapshot(ref, spec);
    await world.end(restored);
    await world.end(source);
  });

  it('a secret is on no disk of the host', async () => {
    const value = `s3cret-${createHash('sha256').update(String(Math.random())).digest('hex')}`;
    const secrets = [
      { name: 'BY_FILE', delivery: 'file' as const, value },
      { name: 'BY_ENV', delivery: 'env' as const, value },
    ];
    const holder = await world.establish({}, { secrets });
    expect((await shell(holder.session, 'cat /run/secrets/BY_FILE; printf "\\n%s" "$BY_ENV"')).stdout).toBe(
      `${value}\n${value}`,
    );
    const found = spawnSync('grep', ['-rlF', value, world.directory], { encoding: 'utf8' });
    expect(found.stdout).toBe('');
    await world.end(holder);
  });

  it('a snapshot holds no secret, neither here nor as a file', async () => {
    const value = `s3cret-${createHash('sha256').update(String(Math.random())).digest('hex')}`;
    const secrets = [
      { name: 'BY_FILE', delivery: 'file' as const, value },
      { name: 'BY_ENV', delivery: 'env' as const, value },
    ];
    const holder = await world.establish({}, { secrets });
    await shell(holder.session, 'echo kept > kept; cat /run/secrets/BY_FILE > /dev/shm/copy');
    const spec = { snapshotId: 'snap_secret', name: null, owner: 'local-tests' };
    const { ref } = await world.extension.snapshot(holder.handle, spec);
    expect(spawnSync('grep', ['-rlF', value, world.directory], { encoding: 'utf8' }).stdout).toBe('');
    const { body } = await world.extension.exportSnapshot(ref);
    const parts: Uint8Array[] = [];
    for await (const part of body) parts.push(part);
    const file = Buffer.concat(parts);
    expect(file.includes('kept')).toBe(true);
    expect(file.includes(value)).toBe(false);
    await world.extension.deleteSnapshot(ref, spec);
    await world.end(holder);
  });

  it('a layer that has changed since it was sealed is not restored', async () => {
    const source = await world.establish();
    await shell(source.session, 'echo true > file');
    const spec = { snapshotId: 'snap_damaged', name: null, owner: 'local-tests' };
    const { ref } = await world.extension.snapshot(source.handle, spec);
    for await (const _ of (await world.extension.exportSnapshot(ref)).body);
    const [layer] = JSON.parse(
      readFileSync(join(world.base, 'snapshots', 'snap_damaged.json'), 'utf8'),
    ).layers;
    writeFileSync(join(world.base, layer, 'home', 'user', 'file'), 'fals\n');
    await world.restart();
    const again = world.spec();
    await expect(world.extension.restore(again, ref, world.context)).rejects.toMatchObject({
      code: 'SBX_SNAPSHOT_DAMAGED',
      extras: { creation: 'not_created' },
    });
    await world.extension.deleteSnapshot(ref, spec);
    await world.end(source);
  });

  it('a sandbox cannot have the spawner remove or copy what is not its own', async () => {
    const trap = join(folder, 'precious');
    writeFileSync(trap, 'precious');
    const victim = await world.establish();
    await shell(
      victim.session,
      `mkdir -p a/b; ln -s ${folder} a/b/out; ln -s / root; i=0; p=deep; while [ $i -lt 200 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p; chmod 000 deep`,
    );
    await world.end(victim);
    expect(readFileSync(trap, 'utf8')).toBe('precious');
  });
});
