/**
 * What is mounted into a sandbox of `ext.local`: secrets are in memory and nowhere else, wherever links inside lead, and a
 * directory of this machine is the one that was judged.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../../src/contract/sandboxes/sandbox.ts';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { SOURCE_REMEDY } from '../../../src/extensions/local/mounts/mount-targets.ts';
import type { ResolvedConfig } from '../../../src/main/config/config.ts';
import { tarOf } from '../../support/image-archives.ts';
import { LocalServer } from '../../support/local-server.ts';
import { powerCut } from '../../support/reboot.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'sbx-mounts-')));
const vault = join(place, 'vault');
mkdirSync(vault);
writeFileSync(join(vault, 'KEY'), 'very-secret-value', { mode: 0o600 });
const BUSYBOX = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path));

const settings = (config: ResolvedConfig) => ({
  timing: { ...config.timing, reconcile: 500 },
  secrets: { ...config.secrets, directory: vault },
});
let server = await LocalServer.start(settings);
const reason = await server.whyNot();
const root = process.getuid?.() === 0;

const ARMED: Record<string, unknown> & { id: string; version: string } = {
  id: 'profile.armed',
  version: '1.0.0',
  extension: 'ext.local',
  persistence: 'persistent',
  overridable: ['image'],
  setup: { secret_refs: [{ name: 'KEY', provider: 'file', delivery: 'file' }] },
};
if (reason === null) {
  await server.client.profiles.push(ARMED);
  await server.client.profiles.push({ ...ARMED, id: 'profile.kept', setup: {} });
  await server.client.volumes.create({ name: 'data' });
}

afterAll(async () => {
  await server.close();
  rmSync(place, { recursive: true });
}, 60_000);

const refused = (field: string) => ({
  code: 'SBX_PATH_REFUSED',
  detail: expect.stringContaining(`${field}: `),
});

async function reboot(): Promise<void> {
  await powerCut(server);
  server = await LocalServer.start(settings, server.dir);
}

async function inState(id: string, state: Sandbox['state']): Promise<void> {
  for (let tries = 0; tries < 800; tries++) {
    if ((await server.client.sandboxes.get(id)).state === state) return;
    await sleep(50);
  }
  throw new Error(`${id} did not become ${state}`);
}

/** What the volume has, by a sandbox without any secret. */
async function onVolume(): Promise<string> {
  const { sandbox_id: id } = await server.client.sandboxes.create({
    volumes: [{ name: 'data', path: '/mnt/look' }],
  });
  const found = await server.inside(id, 'sudo grep -rl very-secret /mnt/look; sudo find /mnt/look; true');
  await server.client.sandboxes.destroy(id);
  return found;
}

async function armed(path: string, image?: string, profile = ARMED.id): Promise<string> {
  const volumes = [{ name: 'data', path }];
  const created = await server.client.sandboxes.create({
    profile,
    volumes,
    ...(image === undefined ? {} : { image }),
  });
  return created.sandbox_id;
}

describe.skipIf(reason !== null)(`secrets${reason === null ? '' : ` (${reason})`}`, () => {
  it('secrets are in memory, above whatever else is mounted', async () => {
    const id = await armed('/mnt/data');
    expect(await server.inside(id, 'cat /run/secrets/KEY; stat -f -c " %T" /run/secrets/KEY')).toBe(
      'very-secret-value tmpfs\n',
    );
    await server.client.sandboxes.destroy(id);
    expect(await onVolume()).toBe('/mnt/look\n');
  });

  it.each(['/run', '/run/secrets', '/run/secrets/x', '/var/run', '/var/run/secrets', '/.door'])(
    'secrets are not where a volume is asked for at %s',
    async (path) => {
      await expect(armed(path)).rejects.toMatchObject({
        code: 'SBX_INVALID_REQUEST',
        field: expect.stringContaining('volumes'),
      });
    },
  );

  it.skipIf(BUSYBOX === undefined)('secrets are not where a link of an image leads a volume', async () => {
    const image = tarOf([
      { name: 'bin/', type: '5' },
      { name: 'bin/busybox', body: readFileSync(BUSYBOX as string), mode: 0o755 },
      { name: 'bin/sh', type: '2', link: 'busybox' },
      { name: 'whole', type: '2', link: '/run' },
      { name: 'deep', type: '2', link: 'a/b' },
      { name: 'a/b', type: '2', link: '../../..//run/secrets' },
      { name: 'self', type: '2', link: '.' },
      { name: 'later', type: '2', link: '/proc/new' },
    ]);
    await server.client.images.import('linked', image);
    for (const path of ['/whole', '/whole/secrets', '/deep', '/deep/x', '/self', '/self/run', '/later']) {
      await expect(armed(path, 'linked'), path).rejects.toMatchObject(refused('volumes[0].path'));
    }
    expect(await onVolume()).toBe('/mnt/look\n');
  });

  it.skipIf(!root)('secrets are not where links that were made inside lead after a restart', async () => {
    const moved = await armed('/mnt/one/data');
    // Where secrets are mounted already, /run itself stays.
    const bent = await armed('/mnt/two', undefined, 'profile.kept');
    await server.inside(moved, 'sudo mv /mnt/one /mnt/was && sudo ln -s /run /mnt/one');
    await server.inside(bent, 'sudo rm -rf /run && sudo ln -s /mnt/two /run');
    await reboot();
    for (const id of [moved, bent]) {
      await inState(id, 'paused');
      await expect(server.client.sandboxes.resume(id)).rejects.toMatchObject(refused('volumes[0].path'));
    }
    for (const id of [moved, bent]) await server.client.sandboxes.destroy(id);
    expect(await onVolume()).toBe('/mnt/look\n');
  });
});

describe.skipIf(reason !== null)('a directory of this machine', () => {
  const source = (name: string) => {
    const path = join(place, name);
    mkdirSync(path, { recursive: true, mode: 0o755 });
    writeFileSync(join(path, 'note'), name);
    return path;
  };
  const showing = async (path: string, target = '/mnt/shown') =>
    await server.client.sandboxes.create({
      profile: 'profile.kept',
      inputs: { mounts: [{ source: path, target }] } as never,
    });

  it('a directory of this machine is checked at every start: a link that took its place is not followed', async () => {
    const [swapped, same] = [source('swapped'), source('same')];
    const { sandbox_id: first } = await showing(swapped);
    const { sandbox_id: second } = await showing(same);
    await reboot();
    renameSync(swapped, `${swapped}.was`);
    symlinkSync('/etc', swapped);
    for (const id of [first, second]) await inState(id, 'paused');
    await expect(server.client.sandboxes.resume(first)).rejects.toMatchObject({
      ...refused('inputs.mounts[0].source'),
      remedy: SOURCE_REMEDY,
    });
    await server.client.sandboxes.resume(second);
    expect(await server.inside(second, 'cat /mnt/shown/note')).toBe('same');
    for (const id of [first, second]) await server.client.sandboxes.destroy(id);
  });

  it('a directory of this machine is not put where a volume is', async () => {
    const mounts = [{ source: source('over'), target: '/mnt/x' }];
    for (const path of ['/mnt/x', '/mnt/x/y', '/mnt']) {
      const request = { inputs: { mounts } as never, volumes: [{ name: 'data', path }] };
      await expect(server.client.sandboxes.create(request)).rejects.toMatchObject(refused('volumes[0].path'));
    }
  });

  it('a mounted directory is the one that was checked, also when it is swapped after the check', async () => {
    const path = source('raced');
    const { sandbox_id } = await showing(path);
    const sandboxes = join(server.dir, 'local', 'sandboxes');
    const own = readdirSync(sandboxes).find((name) =>
      readFileSync(join(sandboxes, name, 'record.json'), 'utf8').includes(JSON.stringify(path)),
    ) as string;
    const { layers, host, range } = JSON.parse(readFileSync(join(sandboxes, own, 'record.json'), 'utf8'));
    const spawner = await SpawnerClient.open(join(server.dir, 'local', 'spawner.sock'), () => {});
    /** As the server asks for it, with the judgement that it made for its own. */
    const started = async (id: string) => {
      mkdirSync(join(sandboxes, id), { mode: 0o711 });
      for (const name of ['config.json', 'mounts', 'targets'])
        copyFileSync(join(sandboxes, own, name), join(sandboxes, id, name));
      const fields = {
        id,
        layers: layers.join(':'),
        host: host.join(':'),
        range,
        ends_at: Date.now() + 60_000,
      };
      const answer = await spawner.call('create', fields).then(
        () => 'started',
        (error: { code?: string; message: string }) => `${error.code} ${error.message}`,
      );
      await spawner.call('destroy', { id });
      return answer;
    };
    expect(await started('probe-same')).toBe('started');
    const stale = expect.stringMatching(/^refused inputs\.mounts\[0\]\.source It is not what it was/);
    renameSync(path, `${path}.was`);
    expect(await started('probe-gone')).toEqual(stale);
    symlinkSync(`${path}.was`, path);
    expect(await started('probe-link')).toEqual(stale);
    rmSync(path);
    mkdirSync(path);
    expect(await started('probe-other')).toEqual(stale);
    spawner.close();
    await server.client.sandboxes.destroy(sandbox_id);
  });
});
