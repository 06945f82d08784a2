/** The image `host`: its `/usr` can be written inside, and the machine's own stays as it is. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const reason =
  process.getuid?.() === 0 ? await server.whyNot() : 'only root can show /usr as the sandbox’s own';
const { client } = server;
const MARK = `sandboxer-mark-${process.pid}`;

/** What a package does: a file of its own, one of the host's replaced, one removed. */
const INSTALL = `set -e
echo '#!/bin/sh' > /usr/local/bin/${MARK}; echo 'echo from inside' >> /usr/local/bin/${MARK}
chmod 755 /usr/local/bin/${MARK}
mkdir -p /usr/lib/${MARK}; echo data > /usr/lib/${MARK}/file
cp /usr/bin/env /usr/bin/env.new; mv /usr/bin/env.new /usr/bin/env
rm -rf /usr/share/doc`;

const LOOK = `${MARK}; cat /usr/lib/${MARK}/file; test -e /usr/share/doc || echo gone; stat -c %U /usr/bin/env`;
const SEEN = 'from inside\ndata\ngone\nroot\n';

afterAll(() => server.close());

describe.skipIf(reason !== null)(`the host’s /usr inside${reason === null ? '' : ` (${reason})`}`, () => {
  let id: string;
  const env = statSync('/usr/bin/env');
  const docs = existsSync('/usr/share/doc') ? readdirSync('/usr/share/doc').length : null;

  beforeAll(async () => {
    ({ sandbox_id: id } = await client.sandboxes.create({}));
  });

  it('the host’s /usr inside is written by root inside, and by no other user', async () => {
    expect((await server.shell(id, `touch /usr/local/bin/${MARK}`)).exit.code).not.toBe(0);
    await server.inside(id, `sudo sh -c "$(cat <<'END'\n${INSTALL}\nEND\n)"`);
    expect(await server.inside(id, LOOK)).toBe(SEEN);
  });

  it('the host’s /usr inside leaves the machine’s own as it was, and other sandboxes too', async () => {
    expect(existsSync(`/usr/local/bin/${MARK}`)).toBe(false);
    expect(existsSync(`/usr/lib/${MARK}`)).toBe(false);
    expect(statSync('/usr/bin/env')).toMatchObject({ ino: env.ino, mtimeMs: env.mtimeMs, uid: env.uid });
    if (docs !== null) expect(readdirSync('/usr/share/doc').length).toBe(docs);
    const { sandbox_id: other } = await client.sandboxes.create({});
    expect(await server.inside(other, `ls /usr/lib/${MARK} 2>&1 || true`)).toContain('No such file');
  });

  it('the host’s /usr inside is in a fork, a snapshot, and a chain of them that was made one layer', async () => {
    const { sandbox_id: fork } = await client.sandboxes.fork(id);
    expect(await server.inside(fork, LOOK)).toBe(SEEN);
    let last = fork;
    for (let turn = 0; turn < 22; turn++) {
      await server.inside(last, `echo ${turn} | sudo tee /usr/lib/${MARK}/turn > /dev/null`);
      const next = await client.sandboxes.fork(last);
      await client.sandboxes.destroy(last);
      last = next.sandbox_id;
    }
    expect(await server.inside(last, `${LOOK}; cat /usr/lib/${MARK}/turn`)).toBe(`${SEEN}21\n`);
    const { snapshot_id } = await client.sandboxes.snapshot(last);
    const restored = await client.snapshots.restore(snapshot_id);
    expect(await server.inside(restored.sandbox_id, LOOK)).toBe(SEEN);
  });

  it('the host’s /usr inside takes a package', async () => {
    const script = `set -e; cd /tmp; mkdir -p p/DEBIAN p/usr/bin
printf 'Package: sbx-sample\\nVersion: 1\\nArchitecture: all\\nMaintainer: n\\nDescription: d\\n' > p/DEBIAN/control
printf '#!/bin/sh\\necho packaged\\n' > p/usr/bin/sbx-sample; chmod 755 p/usr/bin/sbx-sample
dpkg-deb -b p p.deb >/dev/null; sudo dpkg -i p.deb >/dev/null; sbx-sample`;
    const hasDpkg = (await server.shell(id, 'command -v dpkg-deb')).exit.code === 0;
    if (hasDpkg) expect(await server.inside(id, script)).toBe('packaged\n');
  });

  it('the host’s /usr inside shows no other file of the host', async () => {
    const list = await server.inside(id, 'ls -A /home /root /var/lib /var/log 2>/dev/null', 'root');
    expect(list).not.toContain('systemd');
    expect((await server.shell(id, 'grep -c . /etc/shadow', 'root')).stdout.trim()).toBe('2');
    expect(await server.inside(id, 'cat /proc/self/mountinfo')).not.toContain(server.dir);
  });
});
