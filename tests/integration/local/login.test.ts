/** Whoever logs in finds what every program has: the way to programs, the encoding, a prompt that tells root. */
import { afterAll, describe, expect, it } from 'vitest';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const reason = await server.whyNot();
afterAll(() => server.close());

describe.skipIf(reason !== null)(`a login${reason === null ? '' : ` (${reason})`}`, async () => {
  const created = async () =>
    (await server.client.sandboxes.create({ profile: 'profile.agent-dev' })).sandbox_id;
  const id = reason === null ? await created() : '';

  it('a login has the same path and encoding as any program, from nothing', async () => {
    const wanted = await server.inside(id, 'echo $PATH; echo $LC_CTYPE');
    const shown = `'echo $PATH; echo $LC_CTYPE'`;
    for (const shell of ['bash -lc', 'sh -lc'])
      expect(await server.inside(id, `env -i ${shell} ${shown}`)).toBe(wanted);
    expect(await server.inside(id, `bash -lc 'sudo -n id -u'`)).toBe('0\n');
    expect(
      await server.inside(id, `env -i HOME=/root bash -lc 'command -v sudo >/dev/null && echo found'`),
    ).toBe('found\n');
    expect(await server.inside(id, `su - user -c ${shown}`, 'root')).toBe(wanted);
  });

  it('a login keeps a path of its own, adds what it lacks, and keeps a chosen encoding', async () => {
    const path = await server.inside(id, `PATH=/own:/usr/bin:/bin bash -lc 'echo $PATH'`);
    expect(path).toMatch(/\/own:\/usr\/bin:\/bin/);
    expect(path).toContain('/usr/sbin');
    expect(path).toContain('/opt/sandboxer/bin');
    expect(await server.inside(id, `env -i LANG=C bash -lc 'echo "[$LC_CTYPE]"'`)).toBe('[]\n');
  });

  it('a login without input ends with 0, reads /etc/profile.d, and its prompt shows root', async () => {
    expect((await server.shell(id, 'bash -l </dev/null')).exit.code).toBe(0);
    expect((await server.shell(id, 'sh -l </dev/null')).exit.code).toBe(0);
    await server.inside(id, 'echo "export FROM_PROFILE_D=yes" > /etc/profile.d/own.sh', 'root');
    expect(await server.inside(id, `bash -lc 'echo $FROM_PROFILE_D'`)).toBe('yes\n');
    const prompt = (user: string) => server.inside(id, `bash -lic 'echo "\${PS1@P}"' 2>/dev/null`, user);
    expect(await prompt('user')).toMatch(/\$ \n$/);
    expect(await prompt('root')).toMatch(/# \n$/);
  });
});
