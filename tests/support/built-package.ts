/** What users install: the built package, not the sources. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/** The built command, made anew when the sources are newer. */
export function builtCommand(): string {
  const main = join(ROOT, 'dist', 'cli', 'main.cjs');
  const stale = !existsSync(main) || statSync(main).mtimeMs < newestSource();
  if (stale) execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' });
  return main;
}

function newestSource(): number {
  const output = execFileSync('find', [join(ROOT, 'src'), '-name', '*.ts', '-printf', '%T@\n'], {
    encoding: 'utf8',
  });
  return Math.max(...output.trim().split('\n').map(Number)) * 1000;
}
