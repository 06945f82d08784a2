import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SshAccess } from '../../../src/core/ports/host-access.ts';
import type { SshHostOptions } from '../../../src/extensions/shared/ssh/ssh-host.ts';
import { SshHost } from '../../../src/extensions/shared/ssh/ssh-host.ts';
import { SshHosts } from '../../../src/extensions/shared/ssh/ssh-hosts.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';

const missing = sshServerMissing();
let server: SshServer;
let runRoot: string;
const opened: SshHost[] = [];

function hostWith(access: Partial<SshAccess> = {}, options: SshHostOptions = {}): SshHost {
  const host = new SshHost('h1', server.access(access), { runRoot, connectSeconds: 30, ...options });
  opened.push(host);
  return host;
}

const text = async (host: SshHost, argv: readonly string[]) => (await host.run(argv)).stdout.toString();

async function eventually(check: () => boolean, ms = 30_000): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(25)) if (check()) return true;
  return check();
}

describe.skipIf(missing !== null)(`commands over ssh${missing === null ? '' : `: ${missing}`}`, () => {
  beforeAll(async () => {
    server = await startSshServer();
    runRoot = mkdtempSync(join(tmpdir(), 'r-'));
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((host) => host.close()));
    expect(readdirSync(runRoot)).toEqual([]);
  });

  afterAll(async () => {
    await server.stop();
    rmSync(runRoot, { recursive: true, force: true });
  });

  it('commands over ssh give back output, error output and the exit code, 255 and signals too', async () => {
    const host = hostWith();
    const result = await host.run(['sh', '-c', 'cat; echo err >&2; exit 7'], { stdin: 'in' });
    expect(result).toEqual({ code: 7, stdout: Buffer.from('in'), stderr: 'err\n', truncated: false });
    expect((await host.run(['sh', '-c', 'exit 255'])).code).toBe(255);
    expect((await host.run(['sh', '-c', 'kill -9 $$'])).code).toBe(137);
    expect((await host.run(['/no/such/program'])).code).toBe(127);
  });

  it('commands over ssh get their arguments as they are', async () => {
    const host = hostWith();
    const words = ['', ' ', "a'b", '"', '$(id)', '`id`', '\\', 'a\nb', '-n', '*', '!x', ';', 'é\u{1f600}'];
    expect((await text(host, ['printf', '%s\\0', ...words])).split('\0').slice(0, -1)).toEqual(words);
  });

  it('commands over ssh share one connection, and its sockets are private', async () => {
    const host = hostWith();
    const before = await text(host, ['sh', '-c', 'echo $SSH_CONNECTION']);
    const again = await Promise.all([1, 2, 3, 4].map(() => text(host, ['sh', '-c', 'echo $SSH_CONNECTION'])));
    expect(new Set([before, ...again]).size).toBe(1);
    const [directory = ''] = readdirSync(runRoot);
    expect(statSync(join(runRoot, directory)).mode & 0o777).toBe(0o700);
  });

  it('commands over ssh take another connection when one is full', async () => {
    const host = hostWith({}, { commandsPerConnection: 2 });
    const script = 'echo $SSH_CONNECTION; sleep 1';
    const seen = await Promise.all([1, 2, 3, 4, 5].map(() => text(host, ['sh', '-c', script])));
    expect(new Set(seen).size).toBe(3);
  });

  it('commands over ssh close idle connections and come back', async () => {
    const host = hostWith({}, { idleMs: 50 });
    const first = await text(host, ['sh', '-c', 'echo $SSH_CONNECTION']);
    const [directory = ''] = readdirSync(runRoot);
    expect(await eventually(() => !existsSync(join(runRoot, directory, 'c1')))).toBe(true);
    expect(await text(host, ['sh', '-c', 'echo $SSH_CONNECTION'])).not.toBe(first);
  });

  it('commands over ssh stream much through both ways and bound what is kept', async () => {
    const host = hostWith();
    const block = randomBytes(1_000_000);
    const hash = createHash('sha256');
    for (let n = 0; n < 20; n += 1) hash.update(block);
    async function* blocks() {
      for (let n = 0; n < 20; n += 1) yield block;
    }
    const sum = await host.run(['sha256sum'], { stdin: blocks() });
    expect(sum.stdout.toString().slice(0, 64)).toBe(hash.digest('hex'));
    const flood = await host.run(['head', '-c', '5000000', '/dev/zero'], { maxOutputBytes: 1000 });
    expect([flood.code, flood.stdout.length, flood.truncated]).toEqual([0, 1000, true]);
    // A command that does not read its input ends all the same.
    expect((await host.run(['true'], { stdin: blocks() })).code).toBe(0);
  });

  it('commands over ssh report a failed source of their input', async () => {
    const host = hostWith();
    async function* broken() {
      yield Buffer.from('x');
      throw new Error('the source broke');
    }
    await expect(host.run(['cat'], { stdin: broken() })).rejects.toThrow('the source broke');
  });

  it('commands over ssh end when their time is up or they are aborted', async () => {
    const host = hostWith();
    await host.run(['true']);
    await expect(host.run(['sleep', '300'], { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'SBX_TIMEOUT',
      extras: { creation: 'maybe_created' },
    });
    const controller = new AbortController();
    const running = host.run(['sleep', '300'], { signal: controller.signal });
    setTimeout(() => controller.abort(new Error('enough')), 200);
    await expect(running).rejects.toThrow('enough');
    expect((await host.run(['echo', 'on'])).stdout.toString()).toBe('on\n');
  });

  it('commands over ssh are admitted by a certificate, and not by an expired one or for another user', async () => {
    const good = server.certify('cert-good');
    expect((await hostWith(good).run(['true'])).code).toBe(0);
    for (const options of [{ validity: '-2h:-1h' }, { principals: ['somebody-else'] }]) {
      const bad = server.certify('cert-bad', options);
      await expect(hostWith(bad).run(['true'])).rejects.toMatchObject({
        code: 'SBX_BACKEND_AUTH',
        extras: { creation: 'not_created' },
      });
    }
  });

  it('commands over ssh go through a jump host and take the operator’s own configuration', async () => {
    const { destination, port, user, hostKeys, identityFile } = server.access();
    const jump = { destination: 'localhost', port, user, hostKeys, identityFile, certificateFile: null };
    const jumped = hostWith({ jumps: [{ ...jump, configFile: null }] });
    expect((await jumped.run(['true'])).code).toBe(0);
    const configFile = join(server.directory, 'operator_config');
    writeFileSync(
      configFile,
      `Host lab\n  HostName ${destination}\n  Port ${port}\n  StrictHostKeyChecking no\n`,
    );
    expect((await hostWith({ destination: 'lab', port: null, configFile }).run(['true'])).code).toBe(0);
    const other = { destination: 'lab', port: null, configFile, hostKeys: [otherKey()] };
    await expect(hostWith(other).run(['true'])).rejects.toMatchObject({ code: 'SBX_HOST_KEY_CHANGED' });
  });

  function otherKey(): string {
    const path = join(server.directory, `other-${randomBytes(4).toString('hex')}`);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
    return readFileSync(`${path}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
  }

  it('commands over ssh refuse a host with another key, without a key, and hostile names', async () => {
    const pinned = otherKey();
    const fingerprint = (key: string) =>
      execFileSync('ssh-keygen', ['-l', '-f', '-'], { input: key, encoding: 'utf8' }).split(' ')[1];
    const [offered = ''] = server.access().hostKeys;
    await expect(hostWith({ hostKeys: [pinned] }).run(['true'])).rejects.toMatchObject({
      code: 'SBX_HOST_KEY_CHANGED',
      detail: expect.stringMatching(/^Host \S+: pinned ED25519 SHA256:\S+, offered ED25519 SHA256:\S+\.$/),
      extras: { creation: 'not_created' },
    });
    const { detail, remedy } = await hostWith({ hostKeys: [pinned] })
      .run(['true'])
      .catch((error) => error);
    expect(detail).toContain(
      `pinned ED25519 ${fingerprint(pinned)}, offered ED25519 ${fingerprint(offered)}.`,
    );
    // The advice of ssh is to edit a temporary file, which is gone by then.
    expect(`${detail} ${remedy}`).not.toMatch(/known_hosts|ssh-keygen|\/tmp/);
    expect(remedy).toContain('sandboxer hosts add');
    for (const bad of [
      { hostKeys: [] },
      { hostKeys: ['ssh-ed25519 A*'] },
      { hostKeys: ['* AAAA'] },
      { destination: '-oProxyCommand=touch /tmp/x' },
      { destination: 'a b' },
      { destination: '*' },
      { user: 'root\nProxyCommand x' },
      { identityFile: '/tmp/a"\nProxyCommand x' },
    ])
      await expect(hostWith(bad).run(['true'])).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
  });

  it('commands over ssh report what is wrong: no such port, no such key', async () => {
    await expect(hostWith({ port: 1 }).run(['true'])).rejects.toMatchObject({
      code: 'SBX_HOST_UNREACHABLE',
      extras: { creation: 'not_created' },
    });
    const identityFile = join(server.directory, 'stranger');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identityFile]);
    await expect(hostWith({ identityFile }).run(['true'])).rejects.toMatchObject({
      code: 'SBX_BACKEND_AUTH',
    });
  });

  it('commands over ssh fail when sshd is killed under them, and work again when it is back', async () => {
    const host = hostWith();
    await host.run(['true']);
    const mark = join(server.directory, 'it-runs');
    const running = host.run(['sh', '-c', `touch ${mark}; exec sleep 300`]);
    running.catch(() => {});
    expect(await eventually(() => existsSync(mark))).toBe(true);
    await server.kill();
    await expect(running).rejects.toMatchObject({
      code: 'SBX_HOST_UNREACHABLE',
      extras: { creation: 'maybe_created' },
    });
    await expect(host.run(['true'])).rejects.toMatchObject({
      code: 'SBX_HOST_UNREACHABLE',
      extras: { creation: 'not_created' },
    });
    await server.start();
    expect((await host.run(['echo', 'back'])).stdout.toString()).toBe('back\n');
  });

  it('commands over ssh put no secret where others can read it', async () => {
    const host = hostWith();
    const secret = `s3cr3t-${randomBytes(8).toString('hex')}`;
    const { process: remote, exit } = await host.open([
      'sh',
      '-c',
      'read x; sleep 2; printf %s "$x" | wc -c',
    ]);
    remote.stdin.write(`${secret}\n`);
    await sleep(300);
    const everyArgv = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        } catch {
          return '';
        }
      });
    expect(everyArgv.filter((argv) => argv.includes(secret))).toEqual([]);
    remote.stdin.end();
    expect(await exit).toBe(0);
  });

  it('commands over ssh leave no connection behind when this process is killed', async () => {
    const script = join(server.directory, 'child.mjs');
    const module = new URL('../../../src/extensions/shared/ssh/ssh-host.ts', import.meta.url).pathname;
    writeFileSync(
      script,
      `import { SshHost } from ${JSON.stringify(module)};
const host = new SshHost('h', ${JSON.stringify(server.access())}, { runRoot: ${JSON.stringify(runRoot)} });
await host.run(['true']);
process.stdout.write('connected');
setInterval(() => {}, 1000);`,
    );
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    expect(server.connections).toBe(1);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    expect(await eventually(() => server.connections === 0)).toBe(true);
    expect(readdirSync(runRoot)).toHaveLength(1);
    // The next one to come tidies up.
    await hostWith().run(['true']);
    expect(readdirSync(runRoot)).toHaveLength(1);
  });

  it('commands over ssh keep one connection per way to reach a host', async () => {
    const hosts = new SshHosts({ runRoot });
    const first = hosts.get('a', server.access());
    expect(hosts.get('a', server.access())).toBe(first);
    expect(hosts.get('a', server.access({ certificateFile: '/x' }))).not.toBe(first);
    chmodSync(server.identityFile, 0o600);
    await hosts.close();
  });
});
