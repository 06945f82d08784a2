/** The attempts in sandboxes of ext.docker, on a real engine. */
import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import { bytesFrom } from '../../src/testing/conformance/bytes.ts';
import type { LivingContainer } from '../support/docker-world.ts';
import { DockerWorld } from '../support/docker-world.ts';
import { whyNoDockerd } from '../support/dockerd.ts';
import { builtProbe, offerHere, offerInside, surprises, tryInside } from './attempts/probe-runs.ts';

const PROBE = '/tmp/probe';
const BASE = '/nothing-of-ours';
const { path, whyNot } = builtProbe();
const reason = whyNot ?? whyNoDockerd();

describe.skipIf(reason !== null)(`attempts in ext.docker${reason === null ? '' : ` (${reason})`}`, () => {
  const before = hostCanary(BASE);
  let world: DockerWorld;

  async function prepared(): Promise<LivingContainer> {
    const living = await world.establish();
    await living.session.files?.write(PROBE, bytesFrom(readFileSync(path)), { mode: 0o755 });
    return living;
  }

  beforeAll(async () => {
    world = await DockerWorld.start();
  });

  afterAll(async () => {
    await world?.close();
    rmSync(dirname(path), { recursive: true });
    expect(hostCanary(BASE)).toBe(before);
  });

  it('attempts: each ends as the documents say', async () => {
    const [living, other, host] = [await prepared(), await prepared(), await offerHere(path)];
    const offers = {
      HOST: host.offer,
      OTHER: await offerInside(other.session, PROBE),
      OWN: await offerInside(living.session, PROBE),
    };
    const tried = await tryInside({ session: living.session, probe: PROBE, user: null }, offers);
    await host.stop();
    expect(surprises(tried, 'docker')).toEqual([]);
  });
});
