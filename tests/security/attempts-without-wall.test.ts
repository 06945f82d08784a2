/** The attempts, where no wall stands: one that fails here anyway would tell nothing about a wall. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { builtProbe, tryWithoutWall } from './attempts/probe-runs.ts';

const { path, whyNot } = builtProbe();
const guards = () => spawnSync('unshare', ['--mount', '--pid', '--net', '--fork', 'true']).status === 0;
const reason = process.getuid?.() !== 0 || !guards() ? 'only root without a wall can try' : whyNot;
const BASE = '/nothing-of-ours';

afterAll(() => rmSync(dirname(path), { recursive: true }));

it.skipIf(reason !== null)(
  `attempts: without a wall root gets what this kernel has${reason === null ? '' : ` (${reason})`}`,
  async () => {
    const before = hostCanary(BASE);
    const tried = await tryWithoutWall(path);
    // ENOSYS: this kernel has no such call.
    const refused = tried.filter(
      ({ outcome: { what, why } }) => !['open', 'reached', 'absent'].includes(what) && why !== 'ENOSYS',
    );
    expect(
      refused.map(({ attempt, outcome }) => `${attempt.what}: ${outcome.what} (${outcome.why})`),
    ).toEqual([]);
    const got = tried.filter(({ outcome }) => outcome.what !== 'absent');
    expect(got.length).toBeGreaterThan(tried.length / 2);
    expect(hostCanary(BASE)).toBe(before);
  },
);
