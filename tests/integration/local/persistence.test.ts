/** `persistence` as its user sees it, through the whole server: what is left when a machine or a time comes to its end. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../../src/contract/sandboxes/sandbox.ts';
import type { ResolvedConfig } from '../../../src/main/config/config.ts';
import { LocalServer } from '../../support/local-server.ts';
import { powerCut } from '../../support/reboot.ts';

const vault = mkdtempSync(join(tmpdir(), 'sbx-vault-'));
const quick = (config: ResolvedConfig) => ({
  timing: { ...config.timing, reconcile: 500 },
  secrets: { ...config.secrets, directory: vault },
});
let server = await LocalServer.start(quick);
const reason = await server.whyNot();

async function until<T>(look: () => Promise<T | null>): Promise<T> {
  for (let tries = 0; tries < 1_200; tries++) {
    const found = await look();
    if (found !== null) return found;
    await sleep(50);
  }
  throw new Error('it did not come to that');
}

async function profile(id: string, more: Record<string, unknown>): Promise<string> {
  const { client } = server;
  await client.profiles.push({ id: `profile.${id}`, version: '1.0.0', extension: 'ext.local', ...more });
  return `profile.${id}`;
}

async function created(profileId: string): Promise<string> {
  return (await server.client.sandboxes.create({ profile: profileId })).sandbox_id;
}

const inState = (id: string, state: Sandbox['state']) =>
  until(async () => {
    const sandbox = await server.client.sandboxes.get(id);
    return sandbox.state === state ? sandbox : null;
  });

async function reboot(): Promise<void> {
  await powerCut(server);
  server = await LocalServer.start(quick, server.dir);
}

/** As it is now; only its owner may read it. */
function keepSecret(name: string, value: string): void {
  writeFileSync(join(vault, name), value, { mode: 0o600 });
}

afterAll(async () => {
  await server.close();
  rmSync(vault, { recursive: true });
});

describe.skipIf(reason !== null)(`persistence${reason === null ? '' : ` (${reason})`}`, () => {
  it('persistent: a reboot leaves it stopped with its disk; ephemeral: it is lost, and reported as lost', async () => {
    const kept = await created(await profile('kept', { persistence: 'persistent' }));
    const frozen = await created('profile.kept');
    const lost = await created(await profile('lost', {}));
    const secret_refs = [
      { name: 'TOKEN', provider: 'file', delivery: 'env' },
      { name: 'KEY', provider: 'file', delivery: 'file' },
    ];
    for (const { name } of secret_refs) keepSecret(name, `first ${name}`);
    const armed = await created(
      await profile('armed', { persistence: 'persistent', setup: { secret_refs } }),
    );
    const told = 'echo $TOKEN, $(cat /run/secrets/KEY)';
    expect(await server.inside(armed, told)).toBe('first TOKEN, first KEY\n');
    for (const id of [kept, frozen, lost]) await server.inside(id, 'echo precious > file; sync');
    await server.client.sandboxes.pause(frozen);
    await reboot();
    expect(await inState(kept, 'paused')).toMatchObject({ pause_kind: 'stopped' });
    await until(async () =>
      (await server.client.sandboxes.get(frozen)).pause_kind === 'stopped' ? true : null,
    );
    expect((await inState(lost, 'failed')).failure?.code).toBe('SBX_BACKEND_LOST');
    await expect(server.inside(kept, 'true')).rejects.toMatchObject({ code: 'SBX_INVALID_STATE' });
    for (const id of [kept, frozen]) {
      expect((await server.client.sandboxes.resume(id)).state).toBe('active');
      expect(await server.inside(id, 'cat file; echo more >> file')).toBe('precious\n');
      expect(await server.inside(id, 'cat file')).toBe('precious\nmore\n');
    }
    // What was in memory alone is resolved anew and put there again.
    expect(await inState(armed, 'paused')).toMatchObject({ pause_kind: 'stopped' });
    for (const { name } of secret_refs) keepSecret(name, `second ${name}`);
    await server.client.sandboxes.resume(armed);
    expect(await server.inside(armed, told)).toBe('second TOKEN, second KEY\n');
    const events = await server.client.sandboxes.events(kept).page();
    expect(events.items.map(({ type }) => type).join(' ')).toMatch(/paused.*active/);
  });

  it('checkpoint: what is idle for too long leaves its files behind, and they can be restored', async () => {
    const profileId = await profile('checked-idle', {
      persistence: 'checkpoint',
      ttl: { default: '10m', max: '1h', idle_reap: '2s' },
    });
    const id = await created(profileId);
    await server.inside(id, 'echo work > file');
    const ended = await inState(id, 'destroyed');
    const { items } = await server.client.snapshots.list().page();
    const checkpoint = items.find(({ sandbox_id }) => sandbox_id === id);
    expect(checkpoint).toMatchObject({ cause: 'idle', state: 'available' });
    expect(ended.notes.join(' ')).toContain(checkpoint?.snapshot_id);
    const again = await server.client.snapshots.restore(checkpoint?.snapshot_id ?? '');
    expect(await server.inside(again.sandbox_id, 'cat file')).toBe('work\n');
    await server.client.sandboxes.destroy(again.sandbox_id);
  });

  it('checkpoint: at the end of its time, also while a program runs; reported in its events', async () => {
    const profileId = await profile('checked-ttl', {
      persistence: 'checkpoint',
      ttl: { default: '3s', max: '1h' },
    });
    const id = await created(profileId);
    await server.client.background(id, {
      command: ['/bin/sh', '-c', 'while :; do date > busy; echo work > file; sleep 0.01; done'],
    });
    await inState(id, 'destroyed');
    const events = (await server.client.sandboxes.events(id).page()).items;
    const expired = events.find(({ type }) => type.endsWith('sandbox.expired'));
    const snapshotId = expired?.data.details.checkpoint as string;
    expect(expired?.data.details.reason).toBe('ttl');
    expect(await server.client.snapshots.get(snapshotId)).toMatchObject({ cause: 'ttl', state: 'available' });
    const again = await server.client.snapshots.restore(snapshotId);
    expect(await server.inside(again.sandbox_id, 'cat file')).toBe('work\n');
    await server.client.sandboxes.destroy(again.sandbox_id);
    const deleted = await server.client.snapshots.delete(snapshotId);
    expect(deleted.deleted_at).not.toBeNull();
  });
});
