import { statfsSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { IsolationReport } from '../../../src/contract/extensions/isolation.ts';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const reason = await server.whyNot();
const { client } = server;
const root = process.getuid?.() === 0;

/** The report speaks of the first process inside; what a program inside sees must agree with it. */
function maskOf(status: string, name: string): number {
  return Number.parseInt(new RegExp(`^${name}:\\s+([0-9a-f]+)`, 'm').exec(status)?.[1] ?? '', 16);
}

afterAll(() => server.close());

describe.skipIf(reason !== null)(`the isolation report${reason === null ? '' : ` (${reason})`}`, () => {
  it('the isolation report shows the kernel’s values, not the requested ones', async () => {
    const resources = { memory_mb: 192, pids: 77, cpu: 0.5, open_files: 300 };
    const profile = { id: 'profile.isolation-a', version: '1.0.0', resources };
    await client.profiles.push(profile);
    const { sandbox_id: id } = await client.sandboxes.create({ profile: profile.id });
    const report: IsolationReport = await client.sandboxes.isolation(id);
    const status = await server.inside(id, 'cat /proc/self/status');
    const [inner, outer, count] = (await server.inside(id, 'cat /proc/self/uid_map'))
      .trim()
      .split(/\s+/)
      .map(Number);

    expect(report).toMatchObject({ sandbox_id: id, extension: 'ext.local', level: 'container' });
    expect(report.uid_map).toEqual([{ inside: inner, outside: outer, count }]);
    expect(report.seccomp.mode).toBe('filter');
    expect(maskOf(status, 'Seccomp')).toBe(2);
    expect(report.no_new_privs).toBe(false);
    expect(report.capabilities.bounding).not.toContain('sys_admin');
    expect(report.capabilities.bounding).toContain('chown');
    const own = report.namespaces.filter((space) => space.own).map(({ kind }) => kind);
    expect(own).toEqual(expect.arrayContaining(['user', 'mnt', 'pid', 'net', 'ipc', 'uts']));
    expect(report.network.interfaces).toEqual(['lo']);
    expect(report.root).toEqual({ type: 'overlay', read_only: false });
    expect(report.limits).toMatchObject({
      memory_bytes: 192 * 2 ** 20,
      pids: 77,
      cpu_millis: 500,
      open_files: 300,
      frozen: false,
    });
    expect(await server.inside(id, 'ulimit -Hn')).toBe('300\n');
    const { bavail, bsize } = statfsSync(server.dir);
    expect(report.limits.disk_bytes).toBeGreaterThan((bavail * bsize) / 4);
    expect(report.limits.disk_bytes).toBeLessThan((bavail * bsize) / 1.5);
    expect(report.not_enforced.join()).toContain('is counted, not held back');
    expect(report.not_enforced).toContain('It shares the kernel with the host.');
    expect(report.not_enforced.join()).not.toContain('is root outside');
    if (root) expect(report.uid_map[0]?.outside).toBeGreaterThan(65_535);
  });

  it('the isolation report shows the size of a disk of its own, where one exists', async (test) => {
    const profile = { id: 'profile.isolation-disk', version: '1.0.0', resources: { disk_mb: 64 } };
    await client.profiles.push(profile);
    const created = await client.sandboxes.create({ profile: profile.id }).catch(() => null);
    if (created === null) return test.skip('the isolation report says that this machine limits no disks');
    const { limits } = await client.sandboxes.isolation(created.sandbox_id);
    expect(limits.disk_bytes).toBeGreaterThan(32 * 2 ** 20);
    expect(limits.disk_bytes).toBeLessThanOrEqual(64 * 2 ** 20);
  });

  it('the isolation report says that a limit is missing where none was set on the kernel', async () => {
    const profile = {
      id: 'profile.isolation-b',
      version: '1.0.0',
      isolation: { level: 'container' as const, no_new_privs: true },
    };
    await client.profiles.push(profile);
    const { sandbox_id: id } = await client.sandboxes.create({ profile: profile.id });
    const report = await client.sandboxes.isolation(id);
    expect(report.limits.cpu_millis).toBeNull();
    expect(report.not_enforced).toContain('Its share of the processors is not limited.');
    expect(report.no_new_privs).toBe(true);
    expect(await server.inside(id, 'grep NoNewPrivs /proc/self/status')).toMatch(/1/);
    const sudo = await server.shell(id, 'sudo -n id -u');
    expect(sudo.exit.code).not.toBe(0);
  });

  it('the isolation report is refused for a sandbox that does not live', async () => {
    const { sandbox_id: id } = await client.sandboxes.create({});
    await client.sandboxes.destroy(id);
    await expect(client.sandboxes.isolation(id)).rejects.toMatchObject({ code: 'SBX_GONE' });
  });
});
