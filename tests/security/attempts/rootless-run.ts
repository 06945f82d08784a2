/** Performs the attempts in sandboxes of ext.local, as each user inside that the argument names; prints surprises as JSON. */
import { readFileSync } from 'node:fs';
import { bytesFrom } from '../../../src/testing/conformance/bytes.ts';
import { LocalWorld } from '../local-world.ts';
import type { Setting } from './attempt.ts';
import { builtProbe, offerHere, offerInside, surprises, tryInside } from './probe-runs.ts';

interface Trier {
  readonly user: string | null;
  readonly setting: Setting;
}

const PROBE = '/tmp/probe';
const world = new LocalWorld();
const { path, whyNot } = builtProbe();
const reason = whyNot ?? (await world.whyNot());

async function prepared() {
  const { session } = await world.establish();
  await session.files?.write(PROBE, bytesFrom(readFileSync(path)), { mode: 0o755 });
  return session;
}

const found: Record<string, unknown> = { reason };
try {
  if (reason === null) {
    const host = await offerHere(path);
    const [session, other] = [await prepared(), await prepared()];
    const offers = {
      HOST: host.offer,
      OTHER: await offerInside(other, PROBE),
      OWN: await offerInside(session, PROBE),
    };
    for (const { user, setting } of JSON.parse(process.argv[2] ?? '[]') as readonly Trier[]) {
      const tried = await tryInside({ session, probe: PROBE, user }, offers);
      found[setting] = surprises(tried, setting);
    }
    await host.stop();
  }
} finally {
  await world.stop();
}
process.stdout.write(JSON.stringify(found));
