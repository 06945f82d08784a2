/** Where sandboxes go, through the whole server: three hosts, of which nothing but their rows is needed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import { createMemoryExtension } from '../../../src/testing/memory/memory-extension.ts';

const PROFILE = {
  id: 'profile.anywhere',
  version: '1.0.0',
  isolation: { level: 'none' },
  ttl: { default: '10m', max: '1h' },
  route: { only: ['ext.placed'] },
};
const ssh = { destination: '192.0.2.1', host_keys: ['ssh-ed25519 AAAA'] };

describe('placement', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-placement-'));
  let server: RunningServer;
  let client: SandboxerClient;

  beforeAll(async () => {
    const env = { SANDBOXER_STATE_DIR: directory, SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, {
      // Nobody is there to answer a probe.
      hosts: { probe: '1h', canary: { every: null }, local: { capacity: { sandboxes: 3 } } },
      extensions: { local: { enabled: false }, docker: { enabled: false }, compose_ssh: { enabled: false } },
    });
    server = await serve({
      config,
      env,
      extensions: [
        createMemoryExtension({ id: 'ext.placed', demo: false, runsOn: 'hosts' }),
        createMemoryExtension({ id: 'ext.here', demo: false }),
      ],
    });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    await client.request({ method: 'POST', path: '/v1/profiles', json: PROFILE });
    for (const id of ['a', 'b', 'c']) await client.hosts.add({ id, ssh, capacity: { sandboxes: 20 } });
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('a required region is met by the label of a host', async () => {
    const eu = { profile: PROFILE.id, route: { constraints: { region: 'eu' } } };
    const refused = await client.sandboxes.create(eu).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'SBX_NO_ROUTE', retryable: false });
    expect((refused as Error).message).toContain('sandboxer hosts add --label region=eu');
    await client.hosts.add({ id: 'far', ssh, labels: { region: 'eu' } });
    const { sandbox_id, host, region } = await client.sandboxes.create(eu, { wait: 'ready' });
    expect({ host, region }).toEqual({ host: 'far', region: 'eu' });
    await client.sandboxes.destroy(sandbox_id);
    await client.hosts.remove('far');
  });

  it('placement spreads a burst over the hosts, fills them, refuses the rest, and gives the reasons', async () => {
    const burst = await Promise.allSettled(
      Array.from({ length: 66 }, () => client.sandboxes.create({ profile: PROFILE.id }, { wait: 'ready' })),
    );
    const made = burst.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const loads = Object.fromEntries(
      (await client.hosts.list()).items.map(({ id, load }) => [id, load.sandboxes]),
    );
    expect(loads).toEqual({ a: 20, b: 20, c: 20, local: 0 });
    expect(made.map(({ host }) => host).sort()).toEqual(['a', 'b', 'c'].flatMap((id) => Array(20).fill(id)));
    // The first thirty already use all three: what is under way counts.
    const first = made.sort((x, y) => (x.created_at < y.created_at ? -1 : 1)).slice(0, 30);
    for (const id of ['a', 'b', 'c'])
      expect(first.filter(({ host }) => host === id).length).toBeGreaterThan(4);
    const refusals = burst.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(refusals).toHaveLength(6);
    for (const reason of refusals) {
      expect(reason.code).toBe('SBX_NO_ROUTE');
      expect(reason.message).toMatch(/a has no room: sandboxes/);
    }
    const { plan } = await client.sandboxes.route(made[0]?.sandbox_id as string);
    expect(plan.candidates[0]?.placement).toMatch(/^[abc] is registered, spread over \d of 3/);
    await Promise.all(
      made.map(({ sandbox_id }) => client.sandboxes.destroy(sandbox_id, { wait: 'destroyed' })),
    );
    const after = (await client.hosts.list()).items.map(({ load }) => load.sandboxes);
    expect(after).toEqual([0, 0, 0, 0]);
  });

  it('counts, drains and shows the machine of the server like any other', async () => {
    const profile = { ...PROFILE, id: 'profile.here', route: { only: ['ext.here'] } };
    await client.request({ method: 'POST', path: '/v1/profiles', json: profile });
    const create = () => client.sandboxes.create({ profile: profile.id }, { wait: 'ready' });
    const three = [await create(), await create(), await create()];
    expect(three.map(({ host }) => host)).toEqual(['local', 'local', 'local']);
    await expect(create()).rejects.toThrow(/local has no room: sandboxes/);
    expect((await client.hosts.telemetry('local')).ours).toHaveLength(3);
    expect(await client.hosts.get('local')).toMatchObject({
      source: 'server',
      ssh: null,
      load: { sandboxes: 3 },
    });
    await client.sandboxes.destroy(three[0]?.sandbox_id as string, { wait: 'destroyed' });
    await client.hosts.drain('local');
    await expect(create()).rejects.toThrow(/local is draining/);
    await client.hosts.undrain('local');
    await create();
    await expect(client.hosts.remove('local')).rejects.toMatchObject({ code: 'SBX_CONFLICT' });
    await expect(client.hosts.add({ id: 'local', ssh })).rejects.toMatchObject({ code: 'SBX_CONFLICT' });
  });
});
