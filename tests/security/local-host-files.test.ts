/**
 * Files below the host's /usr that not everybody there may read: nobody inside may, whatever he is inside. They are made in a
 * directory of their own below /usr/local and removed again: a mount of our own there would not be shown inside.
 */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Living } from './local-world.ts';
import { LocalWorld, shell } from './local-world.ts';

const world = new LocalWorld();
const reason =
  process.getuid?.() !== 0
    ? 'without root the host’s root is nobody inside anyway'
    : ((await world.whyNot()) ?? null);
const TOKEN = `host-only-${process.pid}-${Date.now()}`;
const [ROOT, DAEMON, USER, NOBODY] = [0, 1, 1000, 65534];

/** Each is closed to those who are neither its owner nor in its group. */
const CLOSED: readonly { mode: number; uid: number; gid: number }[] = [0o600, 0o400, 0o640, 0o700, 0o4710, 0]
  .flatMap((mode) => [
    { mode, uid: ROOT, gid: ROOT },
    { mode, uid: ROOT, gid: DAEMON },
    { mode, uid: USER, gid: USER },
    { mode, uid: NOBODY, gid: NOBODY },
  ])
  .concat([{ mode: 0o660, uid: DAEMON, gid: ROOT }]);

/** What somebody inside may try with a file `F`; what he then has is in `out` or on his terminal. */
const TRIES: Record<string, string> = {
  read: 'cat F',
  copy: 'cp F out && cat out',
  'open for writing, then read': 'exec 9<>F && cat <&9',
  append: 'echo more >> F; cat F',
  chmod: 'chmod 0666 F; cat F',
  chown: 'chown 0:0 F; chown user:user F; cat F; su user -c "cat F"',
  'hard link': 'ln F out; chmod 0666 out; cat out',
  move: 'mv F out; chmod 0666 out; cat out',
  archive: 'tar -cf - F',
  execute: 'F; /bin/sh F',
  attributes: 'setfattr -n user.x -v y F; chmod +r F; cat F',
  'a link to it': 'ln -sf F out; cat out',
  truncate: 'truncate -s 10000 F; cat F',
  'its directory moved': 'mv D moved; cat moved/*',
};

describe.skipIf(reason !== null)(`the host’s own files${reason === null ? '' : ` (${reason})`}`, () => {
  let folder: string;
  let living: Living;
  const nameOf = ({ mode, uid, gid }: (typeof CLOSED)[number]) => `${mode.toString(8)}-${uid}-${gid}`;

  beforeAll(async () => {
    folder = mkdtempSync('/usr/local/share/sandboxer-test-');
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'closed'), { mode: 0o700 });
    const script = `#!/bin/sh\necho ${TOKEN}\n`;
    for (const kind of CLOSED) {
      const path = join(folder, nameOf(kind));
      writeFileSync(path, script);
      chownSync(path, kind.uid, kind.gid);
      chmodSync(path, kind.mode);
    }
    writeFileSync(join(folder, 'closed', 'open'), script);
    chmodSync(join(folder, 'closed', 'open'), 0o644);
    writeFileSync(join(folder, 'public'), 'public\n');
    living = await world.establish();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  });

  it('a file that is not world-readable on the host: refused to the user, to sudo and to root inside', async () => {
    for (const [prefix, user] of [
      ['', 'user'],
      ['sudo -n ', 'user'],
      ['', 'root'],
    ] as const) {
      const { stdout, stderr } = await shell(living.session, `${prefix}cat ${folder}/[0-9]*`, user);
      expect(stdout).toBe('');
      expect(stderr.match(/Permission denied/g)).toHaveLength(CLOSED.length);
    }
  });

  it('root inside: a directory that only the host’s root may enter stays closed', async () => {
    const { stdout } = await shell(
      living.session,
      `ls -A ${folder}/closed; cat ${folder}/closed/open; chmod 755 ${folder}/closed; cat ${folder}/closed/open`,
      'root',
    );
    expect(stdout).toBe('');
  });

  for (const [name, script] of Object.entries(TRIES)) {
    it(`root inside: ${name}: no byte of a closed file`, async () => {
      for (const kind of CLOSED) {
        const fresh = `cd "$(mktemp -d -p /usr/local)" 2>/dev/null || cd "$(mktemp -d)"`;
        const path = join(folder, nameOf(kind));
        const tried = script.replaceAll(/\bF\b/g, path).replaceAll(/\bD\b/g, folder);
        const { stdout, stderr } = await shell(living.session, `${fresh}; ${tried}; cat out`, 'root');
        expect(stdout + stderr, nameOf(kind)).not.toContain(TOKEN);
      }
    });
  }

  it('root inside: world-readable files are read, replaced and removed, and the host has them as before', async () => {
    const { stdout, stderr } = await shell(
      living.session,
      `set -e; cd ${folder}; cat public; echo mine >> public; cat public; chmod 600 public; cat public; mkdir new; echo x > new/file; cat new/file; rm public; test ! -e public; echo back > public; cat public`,
      'root',
    );
    expect(stdout, stderr).toBe('public\npublic\nmine\npublic\nmine\nx\nback\n');
    expect(readdirSync(folder).filter((name) => !/^\d/.test(name))).toEqual(['closed', 'public']);
  });

  it('root inside: owners and modes of the host’s files are shown as they are', async () => {
    const { stdout } = await shell(
      living.session,
      `stat -c '%U %a' /usr/bin/env ${folder} ${folder}/600-0-0; sudo -n id -u`,
      'root',
    );
    expect(stdout).toBe('root 755\nroot 755\nroot 600\n0\n');
  });
});
