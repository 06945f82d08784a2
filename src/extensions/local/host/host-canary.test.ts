import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const canary = join(import.meta.dirname, 'host-canary.ts');
const folder = mkdtempSync(join(tmpdir(), 'sandboxer-canary-'));
const base = join(folder, 'base');
const elsewhere = join(folder, 'elsewhere', 'of', 'others');
for (const place of [base, elsewhere]) mkdirSync(place, { recursive: true });
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns whether the canary notices a change of the mount table, in a mount namespace of its own. */
function sees(change: string): boolean {
  const look = `import { hostCanary } from ${JSON.stringify(canary)}; console.log(hostCanary(${JSON.stringify(base)}));`;
  const script = `look() { "$0" --disable-warning=ExperimentalWarning --input-type=module-typescript -e "$1"; }
    before=$(look "$1") && ${change} && after=$(look "$1") || exit 9; test "$before" != "$after"`;
  const ran = spawnSync('unshare', ['--mount', 'sh', '-c', script, process.execPath, look]);
  expect(ran.status, ran.stderr.toString()).toBeLessThan(2);
  return ran.status === 0;
}

it.runIf(spawnSync('unshare', ['--mount', 'true']).status === 0).each([
  ['a mount over a place that everybody knows', 'mount -t tmpfs none /mnt', true],
  ['one below it', 'mount -t tmpfs none /usr/local', true],
  ['other options of one that was there', 'mount -o remount,bind,ro /proc', true],
  ['a mount where sandboxes are', `mount -t tmpfs none ${base}`, true],
  ['what is theirs, anywhere', `mount --bind ${base} ${elsewhere}`, true],
  ['not what others mount for themselves', `mount -t tmpfs none ${elsewhere}`, false],
])('the host canary reports %s', (_, change, seen) => {
  expect(sees(change)).toBe(seen);
});
