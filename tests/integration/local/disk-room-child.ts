/**
 * Runs in a mount namespace of its own, with its temporary directory on a small disk: sandboxes that fill it, beside one that
 * does not. `disk-room-child.ts DEFAULT_DISK_MB [kept]`. Prints what it found as JSON.
 */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerApiError } from '../../../src/client/transport/api-error.ts';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import { LocalServer } from '../../support/local-server.ts';

const defaultDiskMb = Number(process.argv[2]);
const MIB = 1_048_576;
const server = await LocalServer.start(({ extensions, timing }) => ({
  timing: { ...timing, reconcile: 500 },
  extensions: { ...extensions, local: { ...extensions.local, default_disk_mb: defaultDiskMb, warm: 1 } },
}));
const { client } = server;
const freeMb = () => {
  const { bavail, bsize } = statfsSync(server.dir);
  return Math.round((bavail * bsize) / MIB);
};

const FILLERS = {
  file: 'head -c 2G /dev/zero >big; sleep 60',
  nameless: 'exec 3>big; rm big; head -c 2G /dev/zero >&3; sleep 60',
  empty: 'mkdir d; cd d; seq 1 400000 | xargs -n 2000 touch; sleep 60',
} as const;

async function attempt(id: string, script: string): Promise<string> {
  try {
    return `exit ${(await server.shell(id, script)).exit.code}`;
  } catch (error) {
    return error instanceof SandboxerApiError ? error.code : String(error);
  }
}

async function until(what: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 300; tries++) {
    if (await what()) return true;
    await sleep(100);
  }
  return false;
}

/** A machine whose disk was full a moment ago is not given work until it is looked at again. */
async function created(request: { ttl: string; profile?: string }): Promise<string> {
  for (let tries = 0; ; tries++) {
    try {
      return (await client.sandboxes.create(request)).sandbox_id;
    } catch (error) {
      if (tries === 60) throw error;
      await sleep(1000);
    }
  }
}

async function fill(script: string) {
  const id = await created({ ttl: '5m' });
  const outcome = await attempt(id, script);
  const failed = await until(async () => (await client.sandboxes.get(id)).state === 'failed');
  const { failure } = await client.sandboxes.get(id);
  const freed = await until(async () => freeMb() > beforeMb - 40);
  await client.sandboxes.destroy(id);
  return { outcome, failed, failure: failure?.code, freed };
}

/** The limit outlives the spawner that was told of it. */
async function fillAfterSpawner() {
  const id = await created({ ttl: '5m' });
  const spawner = await SpawnerClient.open(join(server.dir, 'local', 'spawner.sock'), () => {});
  process.kill(Number((await spawner.call('hello')).pid), 'SIGKILL');
  const outcome = await attempt(id, FILLERS.file);
  await client.sandboxes.destroy(id);
  return { outcome };
}

/** A persistent sandbox starts again from its disk, and can remove files. */
async function fillKept() {
  const profile = { id: 'profile.kept', version: '1.0.0', persistence: 'persistent' as const };
  await client.profiles.push(profile);
  const id = await created({ profile: profile.id, ttl: '5m' });
  const outcome = await attempt(id, FILLERS.file);
  // The first answer may come while it is still ending.
  const again = await until(async () => {
    await client.sandboxes.resume(id).catch(() => {});
    return (await attempt(id, 'true')) === 'exit 0';
  });
  const cleared = await attempt(id, 'rm big && head -c 8M /dev/urandom >small && sync && sleep 1');
  await client.sandboxes.destroy(id);
  return { outcome, again, cleared };
}

const found: Record<string, unknown> = { reason: await server.whyNot() };
let beforeMb = 0;
try {
  const quiet = await client.sandboxes.create({ ttl: '10m' });
  found.quietBegins = await attempt(quiet.sandbox_id, 'head -c 30M /dev/urandom >mine');
  const report = await client.sandboxes.isolation(quiet.sandbox_id);
  found.limit = report.limits.disk_bytes;
  found.sentence = report.not_enforced.filter((text) => text.includes('counted'));
  beforeMb = freeMb();
  for (const [name, script] of Object.entries(FILLERS)) found[name] = await fill(script);
  if (process.argv[3] === 'kept') {
    found.kept = await fillKept();
    found.taken = await fillAfterSpawner();
  }
  found.quietEnds = await attempt(quiet.sandbox_id, 'test $(wc -c <mine) -eq 31457280');
} finally {
  await server.close();
}
process.stdout.write(JSON.stringify(found));
