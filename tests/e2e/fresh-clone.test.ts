import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const canRun =
  process.platform === 'linux' && process.getuid?.() === 0 && has('crun') && existsSync(join(ROOT, '.git'));

/** Stands for the network alone: what `npm ci` would bring is linked from this checkout. */
const NPM = `#!/bin/sh
[ "$1" = ci ] || exit 1
cp -al '${ROOT}/node_modules' . 2>/dev/null || cp -a '${ROOT}/node_modules' .
rm -f node_modules/.sandboxer-setup*
`;

/** The machine's own programs, without those of this checkout. */
function systemPath(): string {
  const own = join(ROOT, 'node_modules');
  return (process.env.PATH ?? '')
    .split(':')
    .filter((folder) => !folder.startsWith(own))
    .join(':');
}

describe.runIf(canRun)('a fresh clone', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sbx-clone-'));
  const clone = join(dir, 'sand-boxer');
  const bin = join(dir, 'bin');
  const env = {
    PATH: `${bin}:${systemPath()}`,
    HOME: join(dir, 'home'),
    SANDBOXER_STATE_DIR: join(dir, 'state'),
    SANDBOXER_DOCKER: '0',
  };
  const run = (...args: string[]) =>
    spawnSync(join(clone, 'sandboxer'), args, { cwd: clone, env, encoding: 'utf8', timeout: 240_000 });

  afterAll(() => {
    if (existsSync(join(clone, '.build'))) run('daemon', 'stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('a fresh clone runs its first command, and the second at once', () => {
    mkdirSync(bin);
    mkdirSync(env.HOME);
    writeFileSync(join(bin, 'npm'), NPM, { mode: 0o755 });
    const cloned = spawnSync('git', ['clone', '-q', '--no-hardlinks', ROOT, clone], { encoding: 'utf8' });
    expect(cloned.stderr).toBe('');
    expect(existsSync(join(clone, 'node_modules'))).toBe(false);

    const first = run('run', '--', 'python3', '-c', 'print(1)');
    expect({ ...first, stderr: first.stderr.slice(-2000) }).toMatchObject({ status: 0, stdout: '1\n' });
    expect(first.stderr).toContain('setup: running on pinned Node.js v24.');

    const second = run('run', '--', 'python3', '-c', 'print(2)');
    expect(second).toMatchObject({ status: 0, stdout: '2\n', stderr: '' });

    // Options of the program that Node has, too, are the program's.
    const third = run('run', 'echo', '--env-file=nowhere');
    expect(third).toMatchObject({ status: 0, stdout: '--env-file=nowhere\n', stderr: '' });
    expect(spawnSync('git', ['status', '--porcelain'], { cwd: clone, encoding: 'utf8' }).stdout).toBe('');
  }, 300_000);
});
