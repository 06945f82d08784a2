/** Canaries on real hosts: what they leave in the records, what they cost, and what a crash leaves of them. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import { createMemoryExtension } from '../../../src/testing/memory/memory-extension.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';
import { startChild } from '../../support/child-server.ts';
import { agentBinary } from '../agent/running-agent.ts';
import { hostSpec } from './host-spec.ts';

const missing = sshServerMissing();

async function until<T>(look: () => Promise<T> | T, what: (found: T) => boolean): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await look();
    if (what(found)) return found;
    await sleep(50);
  }
  throw new Error('It did not come to that.');
}

const left = (at: SshServer): string[] => {
  const directory = join(at.directory, 'home', '.sandboxer', 's');
  return existsSync(directory) ? readdirSync(directory) : [];
};

describe.skipIf(missing !== null)('canaries', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-canary-'));
  let sshd: SshServer;
  let server: RunningServer;
  let client: SandboxerClient;

  beforeAll(async () => {
    agentBinary();
    sshd = await startSshServer();
    const env = { SANDBOXER_STATE_DIR: join(directory, 'state'), SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, {
      hosts: { canary: { every: null } },
      extensions: {
        local: { enabled: false },
        docker: { enabled: false },
        compose_ssh: { enabled: false },
        ssh: { enabled: true },
      },
    });
    server = await serve({ config, env, extensions: [createMemoryExtension({ demo: false })] });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    await client.hosts.add(hostSpec('h1', sshd));
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('canaries try the backends of a host and of this machine, and keep the figures', async () => {
    const { items } = await client.hosts.canary('h1');
    expect(items).toMatchObject([{ extension: 'ext.ssh', ok: true, problem: null }]);
    for (const key of ['ready_ms', 'exec_ms', 'destroyed_ms'] as const)
      expect(items[0]?.[key]).toBeGreaterThanOrEqual(0);
    expect((await client.hosts.canary('local')).items).toMatchObject([{ extension: 'ext.memory', ok: true }]);
    await client.hosts.canary('h1');
    const series = (await client.hosts.samples('h1', { kind: 'canary' })).items;
    expect(series).toHaveLength(2);
    expect(series[0]?.data).toMatchObject({ extension: 'ext.ssh', ok: true });
    const { canaries } = await client.hosts.telemetry('h1');
    expect(canaries).toMatchObject([{ extension: 'ext.ssh', status: 'healthy', failures: 0 }]);
  });

  it('canaries belong to no workspace: no sandbox, no event, no money, nothing left', async () => {
    const { control } = server;
    const seen = await control.store.read('t', async (tx) => ({
      sandboxes: (await tx.sandboxes.list({ workspaceId: null, limit: 10 })).items,
      events: await tx.events.lastSeq(),
      attempts: await tx.attempts.recent(10),
      canaries: await tx.canaries.list(),
    }));
    expect(seen).toEqual({ sandboxes: [], events: 0, attempts: [], canaries: [] });
    expect(left(sshd)).toEqual([]);
    expect((await client.stale.inspect()).items).toEqual([]);
  });

  it('canaries are in /metrics with the figures of their hosts', async () => {
    await client.hosts.probe('h1');
    await client.hosts.probe('local');
    const text = await metrics();
    for (const host of ['h1', 'local']) {
      expect(text).toContain(`sandboxer_host_healthy{host="${host}"} 1`);
      for (const name of [
        'cpus',
        'load1',
        'memory_available_bytes',
        'disk_free_bytes',
        'probe_latency_seconds',
      ])
        expect(text).toMatch(new RegExp(`^sandboxer_host_${name}\\{host="${host}"\\} [0-9.e+-]+$`, 'm'));
    }
    expect(text).toContain('sandboxer_canary_success{host="h1",extension="ext.ssh"} 1');
    expect(text).toMatch(/^sandboxer_canary_ready_seconds\{host="h1",extension="ext.ssh"\} /m);
  });

  it('canaries that fail several times exclude their backend on that host, and readmit it', async () => {
    const health = async () => (await client.hosts.get('h1')).health;
    await sshd.kill();
    for (const failures of [1, 2, 3]) {
      const { items } = await client.hosts.canary('h1');
      expect(items).toMatchObject([{ ok: false }]);
      const { canaries } = await health();
      expect(canaries[0]).toMatchObject({ failures, status: failures < 3 ? 'healthy' : 'unhealthy' });
    }
    expect(await health()).toMatchObject({ status: 'unhealthy' });
    await sshd.start();
    const profile = {
      id: 'profile.on-host',
      version: '1.0.0',
      extension: 'ext.ssh',
      isolation: { level: 'none' },
      network: { default: 'allow', egress: [] },
      ttl: { default: '10m', max: '1h' },
    };
    await client.request({ method: 'POST', path: '/v1/profiles', json: profile });
    // The host answers again, and still it is the canary that must say so.
    await expect(client.sandboxes.create({ profile: profile.id })).rejects.toThrow(
      /fails its canary of ext.ssh/,
    );
    await client.hosts.canary('h1');
    await client.hosts.canary('h1');
    const made = await client.sandboxes.create({ profile: profile.id }, { wait: 'ready' });
    expect(made).toMatchObject({ state: 'ready', host: 'h1' });
    await client.sandboxes.destroy(made.sandbox_id, { wait: 'destroyed' });
  });

  it('canaries run by themselves, and the rest of one after a kill -9 is removed after the restart', async () => {
    const home = mkdtempSync(join(directory, 'killed-'));
    const config = join(home, 'config.yaml');
    const configured = (every: string | null) =>
      writeFileSync(
        config,
        stringify({
          hosts: { canary: { every }, registered: [hostSpec('h1', sshd)] },
          extensions: { compose_ssh: { enabled: false }, ssh: { enabled: true } },
        }),
      );
    configured('1s');
    let leftovers: string[] = [];
    for (let tries = 0; tries < 10 && leftovers.length === 0; tries += 1) {
      const child = await startChild(join(import.meta.dirname, 'server.ts'), home, {
        SANDBOXER_CONFIG: config,
      });
      await until(
        () => left(sshd),
        (found) => found.length > 0,
      );
      await child.kill();
      leftovers = left(sshd);
    }
    expect(leftovers).not.toEqual([]);
    configured(null);
    const child = await startChild(join(import.meta.dirname, 'server.ts'), home, {
      SANDBOXER_CONFIG: config,
    });
    const again = new SandboxerClient({ url: `unix:${child.socketPath}` });
    try {
      await until(
        () => left(sshd),
        (found) => found.length === 0,
      );
      expect((await again.hosts.get('h1')).health.canaries.length).toBeLessThanOrEqual(1);
    } finally {
      again.close();
      await child.stop();
    }
  });

  async function metrics(): Promise<string> {
    const { request } = await import('node:http');
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: server.socketPath, path: '/metrics' }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      });
      asked.on('error', reject).end();
    });
  }
});
