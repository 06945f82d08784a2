/** The attempts in sandboxes of ext.local, as user and as root inside. */
import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { bytesFrom } from '../../src/testing/conformance/bytes.ts';
import { builtProbe, offerHere, offerInside, surprises, tryInside } from './attempts/probe-runs.ts';
import type { Living } from './local-world.ts';
import { LocalWorld } from './local-world.ts';

const PROBE = '/tmp/probe';
const world = new LocalWorld();
const before = hostCanary(world.base);
const { path, whyNot } = builtProbe();
const reason = whyNot ?? (await world.whyNot());

async function prepared(): Promise<Living> {
  const living = await world.establish();
  await living.session.files?.write(PROBE, bytesFrom(readFileSync(path)), { mode: 0o755 });
  return living;
}

describe.skipIf(reason !== null)(`attempts in ext.local${reason === null ? '' : ` (${reason})`}`, () => {
  let living: Living;
  let other: Living;
  let host: Awaited<ReturnType<typeof offerHere>>;

  beforeAll(async () => {
    [living, other, host] = await Promise.all([prepared(), prepared(), offerHere(path)]);
  });

  afterAll(async () => {
    await host.stop();
    await world.close();
    rmSync(dirname(path), { recursive: true });
    expect(hostCanary(world.base)).toBe(before);
  });

  for (const user of ['user', 'root'] as const) {
    it(`attempts: each ends as the documents say, as ${user} inside`, async () => {
      const offers = {
        HOST: host.offer,
        OTHER: await offerInside(other.session, PROBE),
        OWN: await offerInside(living.session, PROBE),
      };
      const tried = await tryInside({ session: living.session, probe: PROBE, user }, offers);
      expect(surprises(tried, user)).toEqual([]);
    });
  }
});
