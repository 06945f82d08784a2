/** A single file of this machine in a sandbox. */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LocalServer } from '../../support/local-server.ts';

const place = realpathSync(mkdtempSync(join(tmpdir(), 'sbx-mounted-')));
chmodSync(place, 0o755);
const server = await LocalServer.start();
const reason = await server.whyNot();
afterAll(async () => {
  await server.close();
  rmSync(place, { recursive: true });
});

describe.skipIf(reason !== null)(`a file that is mounted${reason === null ? '' : ` (${reason})`}`, () => {
  it('a mounted file lies where nothing was, and is refused by the name of the field where a directory is', async () => {
    const source = join(place, 'one-file');
    writeFileSync(source, 'of the host', { mode: 0o644 });
    const mounted = (target: string) =>
      server.client.sandboxes.create({ inputs: { mounts: [{ source, target, access: 'ro' }] } });
    await expect(mounted('/media')).rejects.toMatchObject({
      code: 'SBX_PATH_REFUSED',
      detail: expect.stringContaining('inputs.mounts[0].target: '),
      retryable: false,
    });
    const { sandbox_id: id } = await mounted('/mnt/file');
    expect(await server.inside(id, 'cat /mnt/file')).toBe('of the host');
    // In the place of the first mount was a file; a directory fits as well, and a file again.
    const inputs = { mounts: [{ source: place, target: '/mnt/all', access: 'ro' as const }] };
    const whole = await server.client.sandboxes.create({ inputs });
    expect(await server.inside(whole.sandbox_id, 'ls /mnt/all')).toBe('one-file\n');
    const again = await mounted('/mnt/again');
    expect(await server.inside(again.sandbox_id, 'cat /mnt/again')).toBe('of the host');
  });
});
