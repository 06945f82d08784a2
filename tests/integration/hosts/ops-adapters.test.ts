/** What ops-bridge and ops-warden must do for us, and what we do with it: executed with a real sshd. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';

const missing = sshServerMissing();
/** Names the kind of tunnel that it hopes for, as profile.compose-e2e does. */
const DIRECT_PROFILE = {
  id: 'profile.direct',
  version: '1.0.0',
  extension: 'ext.ssh',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  reachability: { tunnel: 'ops-bridge' },
  ttl: { default: '10m', max: '1h' },
};

describe.skipIf(missing !== null)('ops adapters', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-ops-'));
  const tunnels = join(directory, 'tunnels');
  const asked = join(directory, 'asked');
  let sshd: SshServer;
  let server: RunningServer;
  let client: SandboxerClient;

  beforeAll(async () => {
    sshd = await startSshServer();
    mkdirSync(tunnels);
    // As ops-warden does it: the key on its input, the host as its last argument, the certificate on its output.
    const warden = join(directory, 'warden.sh');
    const sign = `ssh-keygen -q -s ${join(sshd.directory, 'user_ca')} -I "$1" -n ${sshd.user} -V -1m:+10m`;
    writeFileSync(
      warden,
      `set -e; d=$(mktemp -d); cat >$d/k.pub; echo "$*" >>${asked}; [ "$1" != refused ]\n${sign} $d/k.pub; cat $d/k-cert.pub; rm -rf $d\n`,
    );
    const env = { SANDBOXER_STATE_DIR: join(directory, 'state'), SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, {
      hosts: {
        probe: '1h',
        canary: { every: null },
        ops_bridge: { directory: tunnels },
        ops_warden: { command: ['sh', warden] },
      },
      extensions: {
        local: { enabled: false },
        docker: { enabled: false },
        compose_ssh: { enabled: false },
        ssh: { enabled: true },
      },
    });
    server = await serve({ config, env });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('ops-bridge: a tunnel is an OpenSSH configuration, and says where the host is', async () => {
    const { hostKeys, identityFile, destination, port, user } = sshd.access();
    const ssh = {
      destination: 'behind-the-bridge',
      host_keys: [...hostKeys],
      identity_file: identityFile as string,
      tunnel: 'lab',
    };
    await client.hosts.add({ id: 'lab', ssh });
    const before = await client.hosts.probe('lab');
    expect(before.health).toMatchObject({ status: 'unhealthy' });
    expect(before.health.detail).toContain(join(tunnels, 'lab.conf'));
    writeFileSync(
      join(tunnels, 'lab.conf'),
      `Host behind-the-bridge\n  HostName ${destination}\n  Port ${port}\n  User ${user}\n  StrictHostKeyChecking no\n`,
    );
    expect((await client.hosts.probe('lab')).health).toMatchObject({ failures: 0, detail: 'It answers.' });
    // A host that was unhealthy is believed after several probes.
    while ((await client.hosts.probe('lab')).health.status !== 'healthy');
    // A consumer is told the tunnel that exists, and where its configuration leads.
    await client.request({ method: 'POST', path: '/v1/profiles', json: DIRECT_PROFILE });
    const [host_key] = hostKeys;
    const endpoint = { host: destination, port, user, host_key };
    const through = await client.sandboxes.create({ profile: DIRECT_PROFILE.id, route: { host: 'lab' } });
    expect(through.reachability).toMatchObject({ tunnel_ref: 'ops-bridge:lab', ssh: endpoint });
    await client.sandboxes.destroy(through.sandbox_id);
    const direct = { destination, port: port as number, user: user as string, host_keys: [...hostKeys] };
    const identity_file = identityFile as string;
    await client.hosts.add({ id: 'direct', ssh: { ...direct, identity_file } });
    const beside = await client.sandboxes.create({ profile: DIRECT_PROFILE.id, route: { host: 'direct' } });
    expect(beside.reachability).toMatchObject({ tunnel_ref: null, ssh: endpoint });
    await client.sandboxes.destroy(beside.sandbox_id);
    // The tunnel cannot weaken what is pinned.
    const other = await startSshServer();
    try {
      await client.hosts.add({ id: 'moved', ssh: { ...ssh, host_keys: [...other.access().hostKeys] } });
      const { health } = await client.hosts.probe('moved');
      expect(health).toMatchObject({ status: 'unhealthy' });
    } finally {
      await other.stop();
    }
  });

  it('ops-warden: a certificate for a key that never leaves, asked for once while it is good', async () => {
    const { hostKeys, destination, port, user } = sshd.access();
    const ssh = {
      destination,
      port: port as number,
      user: user as string,
      host_keys: [...hostKeys],
      identity: 'ops-warden' as const,
    };
    await client.hosts.add({ id: 'signed', ssh });
    for (let tries = 0; tries < 2; tries += 1)
      expect((await client.hosts.probe('signed')).health).toMatchObject({ failures: 0 });
    expect(readFileSync(asked, 'utf8')).toBe('signed\n');
    // Refused for one host, and no other notices.
    await client.hosts.add({ id: 'refused', ssh });
    const { health } = await client.hosts.probe('refused');
    expect(health.detail).toMatch(/ops-warden gave no certificate for refused/);
    expect((await client.hosts.probe('signed')).health).toMatchObject({ failures: 0 });
  });
});
