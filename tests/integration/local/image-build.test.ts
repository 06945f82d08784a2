/** `images build`: a Debian by mmdebstrap, from the package sources of this machine, and a sandbox on it. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { debianSources } from '../../../src/extensions/local/assets/debian-sources.ts';
import { LocalServer } from '../../support/local-server.ts';

const APT_HELPER = '/usr/lib/apt/apt-helper';
const SUITE = existsSync('/etc/os-release')
  ? (/^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '')
  : '';

/** As apt would: with its proxies. */
function whyNoPackages(): string | null {
  if (!existsSync('/usr/bin/mmdebstrap')) return 'mmdebstrap is not installed';
  const { lines, paragraphs } = debianSources(SUITE);
  const [address] = /https?:\/\/[^\s\]]+/.exec([...lines, ...paragraphs].join('\n')) ?? [];
  if (address === undefined) return 'apt of this machine has no source of its own suite';
  const folder = mkdtempSync(join(tmpdir(), 'sbx-apt-'));
  try {
    const url = `${address.replace(/\/$/, '')}/dists/${SUITE}/InRelease`;
    const { status } = spawnSync(APT_HELPER, ['download-file', url, join(folder, 'InRelease')], {
      timeout: 20_000,
    });
    return status === 0 ? null : 'the package sources of this machine cannot be reached';
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const server = await LocalServer.start((config) => ({ limits: { ...config.limits, image_mb: 1024 } }));
const { client } = server;
const reason = (await server.whyNot()) ?? whyNoPackages();

afterAll(() => server.close());

describe.skipIf(reason !== null)(`images build${reason === null ? '' : ` (${reason})`}`, () => {
  it('images build makes a Debian with the named packages, and programs run in it', async () => {
    const image = await client.images.build({ name: 'debian', suite: SUITE, packages: ['busybox-static'] });
    expect(image).toMatchObject({ source: 'build', state: 'available', name: 'debian' });
    await client.profiles.push({ id: 'profile.built', version: '1.0.0', image: 'debian' });
    const { sandbox_id } = await client.sandboxes.create({ profile: 'profile.built' });
    expect(await server.inside(sandbox_id, '. /etc/os-release; echo $VERSION_CODENAME; id -u')).toBe(
      `${SUITE}\n0\n`,
    );
    expect(await server.inside(sandbox_id, 'dpkg -s busybox-static | grep ^Status')).toBe(
      'Status: install ok installed\n',
    );
    // As root inside, who is nobody outside: a package database of its own that works.
    expect(
      await server.inside(sandbox_id, 'dpkg --remove busybox-static >&2; ls /bin/busybox 2>&1; true'),
    ).toMatch(/No such file/);
    await client.sandboxes.destroy(sandbox_id);
  }, 600_000);
});

const noSandboxes = await server.whyNot();

describe.skipIf(noSandboxes !== null)('arguments of mmdebstrap, recorded by a stand-in', () => {
  const bin = mkdtempSync(join(tmpdir(), 'sbx-bin-'));
  const told = join(bin, 'told');
  function pretend(script: string): void {
    writeFileSync(join(bin, 'mmdebstrap'), `#!/bin/sh\n{ echo "$@"; env; } > ${told}\n${script}\n`, {
      mode: 0o755,
    });
    vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  }
  afterEach(() => vi.unstubAllEnvs());
  afterAll(() => rmSync(bin, { recursive: true }));

  it('arguments of mmdebstrap are the suite, the packages and the sources of this machine, without our environment', async () => {
    pretend('echo nothing to be had >&2; exit 25');
    vi.stubEnv('SANDBOXER_OF_A_TEST', 'must-not-be-told');
    await expect(
      client.images.build({ name: 'odd', suite: SUITE || 'bookworm', packages: ['git', 'no-such'] }),
    ).rejects.toMatchObject({
      code: 'SBX_EXTENSION_FAILED',
      detail: 'mmdebstrap failed: nothing to be had',
      remedy: expect.stringContaining('names of the packages'),
    });
    const text = readFileSync(told, 'utf8');
    expect(text).toMatch(new RegExp(`--include=git,no-such ${SUITE || 'bookworm'} \\S*built.tar`));
    const { lines, paragraphs } = debianSources(SUITE || 'bookworm');
    expect(text.includes('/apt.list')).toBe(lines.length > 0);
    expect(text.includes('/apt.sources')).toBe(paragraphs.length > 0);
    expect(text).not.toContain('must-not-be-told');
    expect((await client.images.list()).items.map(({ name }) => name)).not.toContain('odd');
  });

  it('a name that would be an option is refused before', async () => {
    for (const packages of [['-oDebug=1'], ['a,b'], ['A b']])
      await expect(client.images.build({ name: 'odd', packages })).rejects.toMatchObject({ status: 400 });
    await expect(client.images.build({ name: 'odd', suite: '--setup-hook=id' })).rejects.toMatchObject({
      status: 400,
    });
  });
});
