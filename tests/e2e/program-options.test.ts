/** Options behind the command belong to the program inside, although Node looks for some of them in all of its arguments. */
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliWorld } from './cli-world.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** Options of Node that other programs have, too; a file of the name lies neither here nor in the sandbox. */
const OPTIONS = [
  '--env-file=nowhere',
  '--env-file',
  'nowhere',
  '--env-file-if-exists=nowhere',
  '--import=./nothing.js',
];

let world: CliWorld;
beforeAll(async () => {
  world = await CliWorld.open();
  await world.json(['credits', 'grant', '100']);
  await world.json(['create', '--profile', 'stub-basic', '--id', 'box']);
});
afterAll(() => world.close());

/** As npm links it: started by its first line. */
function linkedBin(): string {
  const bin = join(world.folder('bin'), 'sandboxer');
  chmodSync(world.main, 0o755);
  symlinkSync(world.main, bin);
  return bin;
}

/** The script at the root of a checkout that is set up. */
function wrapper(): string {
  const checkout = world.folder('checkout');
  for (const name of ['src', 'agent', 'scripts', '.build', 'node_modules/.bin'])
    mkdirSync(join(checkout, name), { recursive: true });
  writeFileSync(join(checkout, 'package-lock.json'), '{}');
  symlinkSync(process.execPath, join(checkout, 'node_modules/.bin/node'));
  symlinkSync(dirname(world.main), join(checkout, '.build/cli'));
  writeFileSync(join(checkout, '.build/ready'), '');
  copyFileSync(join(ROOT, 'sandboxer'), join(checkout, 'sandboxer'));
  return join(checkout, 'sandboxer');
}

describe.each([
  ['the command of the package', linkedBin],
  ['./sandboxer of a checkout', wrapper],
])('%s', (_, place) => {
  let command: string;
  beforeAll(() => {
    command = place();
  });
  const run = (...args: string[]) => {
    const PATH = `${dirname(process.execPath)}:${world.env.PATH}`;
    const env = { ...world.env, PATH };
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: world.cwd, env, encoding: 'utf8' });
    return { status, stdout, stderr };
  };

  it.each([[[]], [['--']]])('exec %j: every option reaches the program', (separator) => {
    expect(run('exec', 'box', ...separator, 'printf', '%s,', ...OPTIONS)).toEqual({
      status: 0,
      stdout: `${OPTIONS.join(',')},`,
      stderr: '',
    });
  });

  it('run: every option reaches the program', () => {
    const ran = run('run', '--profile', 'stub-basic', '--', 'printf', '%s,', ...OPTIONS);
    expect(ran).toMatchObject({ status: 0, stdout: `${OPTIONS.join(',')},` });
  });

  it('exec: node inside reads its own --env-file', () => {
    expect(run('exec', 'box', 'sh', '-c', 'echo GREETING=hello > in.env')).toMatchObject({ status: 0 });
    const program = ['--env-file=in.env', '-p', 'process.env.GREETING'];
    expect(run('exec', 'box', process.execPath, ...program)).toEqual({
      status: 0,
      stdout: 'hello\n',
      stderr: '',
    });
  });
});
