import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { builtCommand } from '../support/built-package.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const canRun = process.platform === 'linux' && process.getuid?.() === 0 && has('crun');

/** What `npm install` of the package brings besides it: what it declares, and nothing that only this checkout has. */
function linkDependencies(modules: string): void {
  const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const folder of listed.split('\n')) {
    const name = relative(join(ROOT, 'node_modules'), folder);
    if (folder === '' || name.startsWith('..') || name.includes('/node_modules/')) continue;
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(folder, join(modules, name));
  }
}

describe.runIf(canRun)('the package, installed', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sbx-package-'));
  const modules = join(dir, 'node_modules');
  const installed = join(modules, 'sand-boxer');
  const env = {
    // No compiler: what runs in a sandbox comes with the package.
    PATH: `${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: join(dir, 'home'),
    SANDBOXER_STATE_DIR: join(dir, 'state'),
    SANDBOXER_DOCKER: '0',
    CC: '/nonexistent/cc',
  };
  const command = join(modules, '.bin', 'sandboxer');
  const run = (...args: string[]) =>
    spawnSync(command, args, {
      cwd: dir,
      env,
      encoding: 'utf8',
      timeout: 240_000,
    });

  afterAll(() => {
    if (existsSync(installed)) run('daemon', 'stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('the package, installed, brings all that a sandbox needs', () => {
    builtCommand();
    execFileSync('sh', [join(ROOT, 'scripts', 'build-prebuilt.sh'), process.arch], { stdio: 'inherit' });
    const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', dir], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['-xzf', join(dir, filename), '-C', installed, '--strip-components=1']);
    linkDependencies(modules);
    // As npm links the command: its first line starts it.
    const main = join(installed, 'dist', 'cli', 'main.cjs');
    chmodSync(main, 0o755);
    mkdirSync(dirname(command), { recursive: true });
    symlinkSync(main, command);

    expect(existsSync(join(installed, 'agent', 'build'))).toBe(false);
    expect(run('run', '--', 'sh', '-c', 'echo hello from $(id -un)')).toMatchObject({
      status: 0,
      stdout: 'hello from user\n',
    });
    expect(run('run', 'echo', '--env-file=nowhere')).toMatchObject({
      status: 0,
      stdout: '--env-file=nowhere\n',
    });
    expect(run('registry', 'validate')).toMatchObject({ status: 0 });
    const canary = run('create');
    expect(canary.stderr).toMatch(/^its host: Linux \S+, load [\d.]+ [\d.]+ [\d.]+, .* memory free, up /m);
    expect(run('destroy', canary.stdout.trim())).toMatchObject({ status: 0 });
    expect(run('doctor', '--json')).toMatchObject({ status: 0 });
    expect(existsSync(join(installed, 'agent', 'build'))).toBe(false);
  }, 300_000);
});
