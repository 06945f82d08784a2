/** A directory of this machine as the workspace of a sandbox here, by the command. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliWorld } from './cli-world.ts';

let world: CliWorld;
let folder: string;
let reason = '';
beforeAll(async () => {
  world = await CliWorld.open({ env: { SANDBOXER_LOCAL: '1' } });
  folder = world.folder('project');
  for (const [name, text] of [
    ['note.txt', 'note'],
    ['drop.log', 'dropped'],
    ['.gitignore', '*.log\n'],
  ] as const)
    writeFileSync(join(folder, name), text);
  for (const [name, workspace] of [
    ['plain', 'access: rw'],
    ['sealed', 'access: ro'],
    ['mirrored', 'mode: mirror'],
  ]) {
    const path = join(folder, '..', `${name}.yaml`);
    writeFileSync(
      path,
      `id: profile.${name}\nversion: 1.0.0\nextension: ext.local\nworkspace: { ${workspace} }\n`,
    );
    const pushed = await world.run(['profiles', 'push', path]);
    if (pushed.code !== 0) throw new Error(pushed.stderr);
  }
  const tried = await world.run(['run', '-p', 'plain', '--', 'true']);
  if (tried.code !== 0) reason = tried.stderr;
}, 120_000);
afterAll(() => world.close());

describe('--workdir', () => {
  const script =
    'cat note.txt; ls; touch new 2>/dev/null && echo written; sudo touch new 2>/dev/null && echo written';

  for (const options of [
    ['-p', 'plain', '--access', 'ro'],
    ['-p', 'sealed'],
  ]) {
    it(`run ${options.join(' ')}: the directory is there, and read-only inside`, async ({ skip }) => {
      skip(reason.includes('SBX_NO_ROUTE'), reason);
      const program = ['sh', '-c', `${script}; true`];
      const done = await world.run(['run', ...options, '--workdir', folder, '--', ...program]);
      expect(done).toMatchObject({ code: 0, stdout: 'notenote.txt\n' });
    });
  }

  it('create: the same', async ({ skip }) => {
    skip(reason.includes('SBX_NO_ROUTE'), reason);
    const made = ['create', '-p', 'plain', '--id', 'made', '--access', 'ro', '--workdir', folder];
    expect(await world.run(made)).toMatchObject({ code: 0 });
    const { stdout } = await world.run(['exec', 'made', '--', 'sh', '-c', `${script}; true`]);
    expect(stdout).toBe('notenote.txt\n');
    await world.run(['rm', 'made']);
  });

  it('--workdir is refused, with a remedy, where the sandbox has no workspace or a second source', async () => {
    const none = await world.run([
      'run',
      '-p',
      'plain',
      '--access',
      'none',
      '--workdir',
      folder,
      '--',
      'true',
    ]);
    expect([none.code, none.stderr]).toEqual([125, expect.stringContaining('workspace access')]);
    const both = [
      'run',
      '-p',
      'mirrored',
      '--access',
      'ro',
      '--mirror',
      folder,
      '--workdir',
      folder,
      '--',
      'true',
    ];
    const two = await world.run(both);
    expect([two.code, two.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('Leave out --workdir'),
    ]);
    expect(two.code).not.toBe(0);
  });
});
