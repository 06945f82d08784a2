/** What users install: `tsc` output, not the sources. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** The built command, made anew when the sources are newer. */
export function builtCommand(): string {
  const main = join(ROOT, 'dist', 'cli', 'main.js');
  const stale = !existsSync(main) || statSync(main).mtimeMs < newestSource();
  if (stale) {
    execFileSync(join(ROOT, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.build.json'], {
      cwd: ROOT,
      stdio: 'inherit',
    });
    cpSync(join(ROOT, 'src', 'store', 'migrations'), join(ROOT, 'dist', 'store', 'migrations'), {
      recursive: true,
    });
  }
  return main;
}

function newestSource(): number {
  const output = execFileSync('find', [join(ROOT, 'src'), '-name', '*.ts', '-printf', '%T@\n'], {
    encoding: 'utf8',
  });
  return Math.max(...output.trim().split('\n').map(Number)) * 1000;
}
