/** Registered hosts end to end: a real server, real sshd, the real ext.ssh. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import type { HostSpecInput } from '../../../src/contract/extensions/host.ts';
import { SshHost } from '../../../src/extensions/shared/ssh/ssh-host.ts';
import { createSshExtension } from '../../../src/extensions/ssh/create.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import { Warden } from '../../../src/main/hosts/ops-warden.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';
import { agentBinary } from '../agent/running-agent.ts';

const missing = sshServerMissing();
const PROFILE = {
  id: 'profile.on-host',
  version: '1.0.0',
  extension: 'ext.ssh',
  isolation: { level: 'none' },
  network: { default: 'allow', egress: [] },
  ttl: { default: '10m', max: '1h' },
};

describe.skipIf(missing !== null)('hosts', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-hosts-'));
  const sshd: SshServer[] = [];
  let server: RunningServer;
  let client: SandboxerClient;

  function specOf(id: string, at: SshServer, over: Partial<HostSpecInput> = {}): HostSpecInput {
    const { destination, port, user, hostKeys, identityFile } = at.access();
    return {
      id,
      ssh: {
        destination,
        port: port as number,
        user: user as string,
        host_keys: [...hostKeys],
        identity_file: identityFile as string,
      },
      ...over,
    };
  }
  const home = (at: SshServer) => join(at.directory, 'home', '.sandboxer', 's');
  const created = (host: string, id?: string) =>
    client.sandboxes.create({ profile: PROFILE.id, route: { host }, ...(id && { id }) }, { wait: 'ready' });

  beforeAll(async () => {
    sshd.push(await startSshServer(), await startSshServer());
    const env = { SANDBOXER_STATE_DIR: directory, SANDBOXER_LOG_LEVEL: 'silent', SANDBOXER_LOCAL: '0' };
    const ssh = createSshExtension({
      agents: { [machine()]: agentBinary() },
      ssh: { connectSeconds: 30, aliveSeconds: 10 },
    });
    server = await serve({ config: loadConfig(env), env, extensions: [ssh] });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    await client.request({ method: 'POST', path: '/v1/profiles', json: PROFILE });
    await client.hosts.add(specOf('h1', sshd[0] as SshServer, { capacity: { sandboxes: 2 } }));
    await client.hosts.add(specOf('h2', sshd[1] as SshServer));
    await client.hosts.add(specOf('prod', sshd[1] as SshServer, { class: 'production' }));
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    for (const one of sshd) await one.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('hosts are probed and reported', async () => {
    expect((await client.hosts.probe('h1')).health).toMatchObject({ status: 'healthy', failures: 0 });
    const seen = await client.hosts.telemetry('h1');
    expect(seen).toMatchObject({ host: 'h1', machine: machine(), sandboxes: 0 });
    expect(seen.memory_total_mb).toBeGreaterThan(0);
    expect((await client.hosts.telemetry('local')).cpus).toBeGreaterThan(0);
    expect((await client.hosts.samples('h1')).items.length).toBeGreaterThan(0);
  });

  it('hosts of production are refused, by name and otherwise', async () => {
    await expect(created('prod')).rejects.toMatchObject({ code: 'SBX_NO_ROUTE' });
    await expect(created('prod')).rejects.toThrow(/production host/);
    const tried = await client.hosts.canary('prod').catch((error) => error);
    expect(tried).toMatchObject({ code: 'SBX_INVALID_REQUEST', status: 400, field: 'host' });
    expect(`${tried.problem.title} ${tried.remedy}`).not.toMatch(/state of the sandbox|lifecycle/);
    expect(tried.remedy).toMatch(/class "sandbox"/);
  });

  it('hosts take sandboxes up to what they have, in a burst too, and give the reason', async () => {
    const burst = await Promise.allSettled([1, 2, 3, 4].map(() => created('h1')));
    const made = burst.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(made.map(({ host, state }) => [host, state])).toEqual([
      ['h1', 'ready'],
      ['h1', 'ready'],
    ]);
    const refusals = burst.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    expect(refusals).toEqual(['SBX_NO_ROUTE', 'SBX_NO_ROUTE']);
    await expect(client.hosts.remove('h1')).rejects.toMatchObject({ code: 'SBX_INVALID_STATE' });
    for (const { sandbox_id } of made) await client.sandboxes.destroy(sandbox_id, { wait: 'destroyed' });
    expect(readdirSync(home(sshd[0] as SshServer))).toEqual([]);
  });

  it('a draining host gets no new sandboxes; teardown touches no object of another owner', async () => {
    const sandbox = await created('h2', 'kept');
    await client.hosts.drain('h2');
    await expect(created('h2')).rejects.toThrow(/draining/);
    const foreign = join(home(sshd[1] as SshServer), 'other-g1-a1');
    mkdirSync(foreign);
    writeFileSync(join(foreign, '..', '..', 'm', 'other-g1-a1'), 'another-owner\nx\n1\n');
    await client.sandboxes.destroy(sandbox.sandbox_id, { wait: 'destroyed' });
    expect(readdirSync(home(sshd[1] as SshServer))).toEqual(['other-g1-a1']);
    expect(existsSync(foreign)).toBe(true);
    await client.hosts.undrain('h2');
  });

  it('lost hosts fail their sandboxes with a typed error, and remove them when they are back', async () => {
    const [first] = sshd as [SshServer];
    const sandbox = await created('h1');
    await first.kill();
    await expect(created('h1')).rejects.toMatchObject({ code: 'SBX_HOST_UNREACHABLE' });
    expect((await created('h2', 'unaffected')).host).toBe('h2');
    await client.sandboxes.destroy(sandbox.sandbox_id, { wait: 'none' });
    await sleep(500);
    await first.start();
    for (let tries = 0; tries < 240; tries += 1) {
      if ((await client.sandboxes.get(sandbox.sandbox_id)).state === 'destroyed') break;
      await sleep(250);
    }
    expect((await client.sandboxes.get(sandbox.sandbox_id)).state).toBe('destroyed');
    expect(readdirSync(home(first))).toEqual([]);
    await client.sandboxes.destroy('unaffected', { wait: 'destroyed' });
  });

  it('hosts are logged in to by certificates of ops-warden, renewed before they expire', async () => {
    const [at] = sshd as [SshServer];
    const script = join(at.directory, 'sign.sh');
    const ca = join(at.directory, 'user_ca');
    writeFileSync(
      script,
      `set -e; d=$(mktemp -d); cat >$d/k.pub; echo x >>${at.directory}/signed
ssh-keygen -q -s ${ca} -I "$1" -n ${at.user} -V -1m:+2m $d/k.pub; cat $d/k-cert.pub; rm -rf $d`,
    );
    let now = Date.now();
    const warden = new Warden({
      command: ['sh', script],
      renewBeforeMs: 30_000,
      directory: join(directory, 'ssh'),
      now: () => now,
    });
    const signed = () =>
      execFileSync('wc', ['-l', join(at.directory, 'signed')])
        .toString()
        .split(' ')[0];
    const files = await warden.certificate('h1');
    await warden.certificate('h1');
    expect(signed()).toBe('1');
    const host = new SshHost('h1', at.access(files));
    expect((await host.run(['true'])).code).toBe(0);
    await host.close();
    now += 100_000;
    await warden.certificate('h1');
    expect(signed()).toBe('2');
    const broken = new Warden({
      command: ['false'],
      renewBeforeMs: 0,
      directory: join(directory, 'b'),
      now: Date.now,
    });
    await expect(broken.certificate('h1')).rejects.toMatchObject({ code: 'SBX_BACKEND_AUTH' });
  });
});
