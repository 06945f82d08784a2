/** What a sandbox on a Docker engine is told, and what programs inside see of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerWorld, output } from '../../support/docker-world.ts';
import { whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();
interface Inspected {
  readonly Config: { readonly User: string; readonly Labels: Record<string, string>; readonly Env: string[] };
  readonly HostConfig: Record<string, unknown>;
  readonly Mounts: readonly { readonly Source: string; readonly RW: boolean }[];
}

describe.skipIf(whyNot !== null)(
  `the wall of ext.docker${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let world: DockerWorld;
    beforeAll(async () => {
      world = await DockerWorld.start();
    });
    afterAll(async () => world?.close());

    it('a sandbox of ext.docker has no network, no capability, no way to more, and an unprivileged user', async () => {
      const living = await world.establish();
      const { Config, HostConfig, Mounts } = (await world.inspect(living)) as unknown as Inspected;
      expect(HostConfig).toMatchObject({
        NetworkMode: 'none',
        Privileged: false,
        CapDrop: ['ALL'],
        CapAdd: null,
        SecurityOpt: ['no-new-privileges:true'],
        PidMode: '',
        IpcMode: 'private',
        Binds: null,
        PidsLimit: 4096,
      });
      expect(Number(HostConfig.Memory)).toBeGreaterThan(0);
      expect(Config.User).toBe('1000:1000');
      expect(Config.Labels['io.sandboxer.owner']).toBe(world.owner);
      expect(Mounts.every(({ RW }) => !RW)).toBe(true);
      expect(Mounts.some(({ Source }) => Source.includes('docker.sock'))).toBe(false);
      const status = await output(
        living.session,
        'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; id -u',
      );
      expect(status.match(/^Cap\w+:\s+0+$/gm)).toHaveLength(5);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/^1000$/m);
      expect(await output(living.session, 'ls /sys/class/net')).toBe('lo');
      const tries =
        'echo x >/.sandboxer/door/x; mkdir /.sandboxer/door/in; echo x >/.sandboxer/agent; mount -t tmpfs none /tmp';
      const refusals = await output(living.session, tries);
      expect(refusals.match(/Read-only|denied|not permitted/gi)?.length).toBeGreaterThanOrEqual(4);
      await world.end(living);
    });

    it('the isolation report of ext.docker shows the limits in force, as the kernel inside has them', async () => {
      const resources = { cpu: 0.5, memory_mb: 64, pids: 50, disk_mb: null, open_files: 256, gpu: null };
      const living = await world.establish({ resources, inputs: { read_only_root: true } });
      const facts = await world.extension.inspectIsolation(living.handle, world.context);
      expect(facts).toMatchObject({
        level: 'container',
        runtime: { name: 'runc', version: expect.stringContaining('Docker') },
        seccomp: { mode: 'filter' },
        no_new_privs: true,
        capabilities: { bounding: [], effective: [] },
        limits: { memory_bytes: 64 * 1_048_576, pids: 50, cpu_millis: 500, open_files: 256, frozen: false },
        network: { interfaces: ['lo'] },
        root: { read_only: true },
      });
      const shared = facts.namespaces.filter(({ own }) => !own).map(({ kind }) => kind);
      expect(shared).toEqual(['user']);
      expect(facts.not_enforced).toContain('Ids inside are ids of the engine’s machine.');
      expect(facts.not_enforced).not.toContain('Its memory is not limited.');
      await world.extension.pause(living.handle, world.context);
      await expect(world.extension.inspectIsolation(living.handle, world.context)).rejects.toMatchObject({
        code: 'SBX_CONFLICT',
      });
      await world.end(living);
    });

    it('a sandbox of ext.docker has a read-only root on request', async () => {
      const living = await world.establish({ inputs: { read_only_root: true } });
      expect(await output(living.session, 'touch /home/sandbox/x')).toMatch(/Read-only/);
      expect(
        await output(living.session, 'echo fine > here && cat here && echo t > /tmp/t && cat /tmp/t'),
      ).toBe('fine\nt');
      const spec = { snapshotId: 'snap_read_only', name: null, owner: world.owner };
      await expect(world.extension.snapshot(living.handle, spec, world.context)).rejects.toMatchObject({
        code: 'SBX_UNSUPPORTED',
      });
      await world.end(living);
    });

    it('secrets of a sandbox of ext.docker stay out of the engine’s records', async () => {
      const value = 'hidden-value-of-a-secret';
      const secrets = [
        { name: 'TOKEN', delivery: 'env' as const, value },
        { name: 'KEY', delivery: 'file' as const, value },
      ];
      const secretRefs = secrets.map(({ name, delivery }) => ({ name, delivery, provider: 'env' }));
      const living = await world.establish({ secretRefs }, { secrets });
      expect(await output(living.session, 'echo $TOKEN; cat /run/secrets/KEY')).toBe(`${value}\n${value}`);
      expect(JSON.stringify(await world.inspect(living))).not.toContain(value);
      const spec = { snapshotId: 'snap_secret', name: null, owner: world.owner };
      const { ref } = await world.extension.snapshot(living.handle, spec, world.context);
      const restoredSpec = world.spec();
      const restored = await world.reach(
        restoredSpec,
        await world.extension.restore(restoredSpec, ref, world.context),
      );
      expect(await output(restored.session, 'ls -A /run/secrets; echo $TOKEN')).toBe('');
      await world.extension.deleteSnapshot(ref, spec, world.context);
      await world.end(restored);
      await world.end(living);
    });

    it('a sandbox of ext.docker runs as the image’s own user, unless that is root', async () => {
      await world.engine.importImage('test/users:1');
      const build = async (tag: string, user: string) => {
        await world.engine.docker('create', '--name', tag, 'test/users:1', 'true');
        await world.engine.docker('commit', '--change', `USER ${user}`, tag, `test/users:${tag}`);
        await world.engine.docker('rm', tag);
        const living = await world.establish({ image: `test/users:${tag}` });
        const ids = await output(living.session, 'id -u; id -g; touch mine && echo writable');
        await world.end(living);
        return ids;
      };
      expect(await build('named', 'nobody')).toBe('65534\n65534\nwritable');
      expect(await build('numbered', '4321:99')).toBe('4321\n99\nwritable');
      expect(await build('rooted', 'root')).toBe('1000\n1000\nwritable');
    });
  },
);
