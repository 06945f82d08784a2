/**
 * ext.local at the level `gvisor`, past the trial that keeps Debian 12's runsc from being offered: busybox works below it,
 * so that everything of ours at that level is tried, on the oldest runtime that can be had.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { conformanceSuite } from '../../src/testing/conformance.ts';
import { outcomeOf, suiteHere } from '../support/local-suite-report.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const WHOLE = process.env.SANDBOXER_GVISOR === 'whole';
const LIMIT_MS = 900_000;

const missing = [
  ...['/usr/bin/runsc', '/bin/busybox'].filter((path) => !existsSync(path)),
  ...(process.getuid?.() === 0 ? [] : ['root']),
];

/** The day of its release: `runsc version release-20231106.0`, in Debian `0.0~20221219.0`. */
function releasedOn(): number {
  return Number(/\b(20\d{6})\./.exec(execFileSync('runsc', ['--version'], { encoding: 'utf8' }))?.[1] ?? 0);
}

const FILES = ['files: a tree goes up and comes down', 'files: files and programs see the same'];

function leftOut(): Record<string, string> {
  const old = releasedOn() < 20230227;
  const slow = conformanceSuite().filter(({ name, claim }) => claim === 'files' && !FILES.includes(name));
  return {
    'resources: cpu: more is not had':
      'Its kernel counts as used what it waited for: tests/integration/local/levels.test.ts asks this machine instead.',
    ...(old && {
      'pty: interrupt typed into a terminal reaches the program':
        'This runsc has no signals from a terminal; releases since 20230227 have, and only those of November 2023 are offered.',
    }),
    ...(!WHOLE &&
      Object.fromEntries(
        slow.map(({ name }) => [name, 'Minutes below ptrace, in code of the agent: SANDBOXER_GVISOR=whole.']),
      )),
  };
}

const title = `the level gvisor${missing.length === 0 ? '' : ` (not here: ${missing.join(', ')})`}`;
describe.skipIf(missing.length > 0)(title, () => {
  it(
    'ext.local with gVisor conforms in what it declares, and declares what it cannot',
    async () => {
      for (const script of ['build-agent.sh', 'build-spawner.sh'])
        spawnSync('sh', [join(ROOT, 'scripts', script)], { stdio: 'inherit' });
      const directory = mkdtempSync(join(tmpdir(), 'sbx-gvisor-'));
      try {
        const report = await suiteHere(
          { directory: join(directory, 'local'), untriedLevels: true },
          { level: 'gvisor', skip: leftOut() },
        );
        expect(report.capabilities.resources).not.toContain('pids');
        expect(report.capabilities).toMatchObject({ memory_overrun: 'sandbox', pty: true, pause: 'frozen' });
        expect(outcomeOf(report, 'resources: pids: a fork bomb is bounded')).toBe('not_claimed');
        for (const name of ['refusal: limits that are not declared', 'resources: memory_mb: more is not had'])
          expect(outcomeOf(report, name)).toBe('passed');
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    },
    LIMIT_MS,
  );
});
