/**
 * The server or its spawner is killed at each moment of a snapshot and of a fork: the source goes on with all its files, what
 * is listed is whole, and nothing else is left.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hostCanary } from '../../../src/extensions/local/host/host-canary.ts';
import {
  childrenOf,
  goOn,
  hasOpen,
  hold,
  KillableServer,
  killed,
  names,
  signal,
  stateOf,
  until,
} from './killable-server.ts';

const server = await KillableServer.start();
const reason = await server.whyNot();
const before = hostCanary(server.base);
const { client, base } = server;
const limitsDisks = (await client.extensions.list()).items.some(
  ({ id, capabilities }) => id === 'ext.local' && capabilities.resources.includes('disk_mb'),
);

/** So much that it is copied for a while, and that an idle one becomes a layer as it is. */
const FILL = 'mkdir many; cd many; seq 1000 | split -l 1 -a 3; head -c 9000000 /dev/urandom > large';
const LOOK = 'cat many/* | sha256sum; ls many | wc -l';
const TICK = 'n=0; while :; do n=$((n+1)); echo $n > ticks.new; mv ticks.new ticks; sleep 0.02; done';

const KINDS = ['snapshot', 'fork'] as const;
const VICTIMS = ['server', 'spawner', 'both'] as const;
type Kind = (typeof KINDS)[number];
type Victim = (typeof VICTIMS)[number];

/** What was asked for and may never be answered. */
function ask(kind: Kind, id: string): Promise<unknown> {
  const asked =
    kind === 'snapshot' ? client.sandboxes.snapshot(id, { name: 'cut' }) : client.sandboxes.fork(id);
  return asked.catch(() => {});
}

/** It has been taken up. */
async function begun(kind: Kind): Promise<void> {
  const list = async () =>
    kind === 'snapshot'
      ? (await client.snapshots.list().page()).items.length > 0
      : (await client.sandboxes.list({ state: ['requested', 'provisioning'] }).page()).items.length > 0;
  await until(`the ${kind} is begun`, async () => (await list()) || null);
}

async function kill(victim: Victim, spawner: number): Promise<void> {
  if (victim !== 'server') await killed(spawner);
  if (victim !== 'spawner') await killed(server.pid);
}

/** The layer that is being made, by the name of its directory. */
async function newLayer(known: readonly string[], ms = 60_000): Promise<string> {
  const look = () => server.layers().find((name) => !known.includes(name)) ?? null;
  return await until('a layer is made', look, { ms, every: 0 });
}

/** Each comes to its moment, kills, and lets go whatever was held. */
const STAGES = {
  'before it is asked for': async (kind: Kind, victim: Victim, id: string) => {
    const spawner = await server.spawner();
    await hold(spawner);
    const asked = ask(kind, id);
    await begun(kind);
    await kill(victim, spawner);
    goOn(spawner);
    return { asked };
  },
  'while it is copied': async (kind: Kind, victim: Victim, id: string) => {
    const spawner = await server.spawner();
    const { asked, copy } = await copying(kind, id, spawner);
    await kill(victim, spawner);
    // The next server finds it at work.
    if (victim !== 'spawner') await server.again();
    goOn(copy);
    await until('nobody copies', () => stateOf(copy) === '' || null);
    return { asked };
  },
  'after it was copied': async (kind: Kind, victim: Victim, id: string) => {
    const spawner = await server.spawner();
    const { asked, copy } = await copying(kind, id, spawner);
    await hold(server.pid);
    goOn(copy);
    await until('it is copied', () => stateOf(copy) === '' || null);
    await kill(victim, spawner);
    goOn(server.pid);
    return { asked };
  },
  'after it was sealed': async (kind: Kind, victim: Victim, id: string) => {
    const attempt = await server.attemptOf(id);
    const spawner = await server.spawner();
    const agent = Number((await server.ask('status', { id: attempt })).pid);
    const known = server.layers();
    await hold(agent);
    const asked = ask(kind, id);
    await begun(kind);
    let layer: string | null = null;
    while (layer === null) {
      // The server waits for the agent, once the spawner has answered it: that answers in order.
      await hold(agent);
      goOn(spawner);
      for (let n = 0; n < 2; n++) await server.ask('hello');
      await hold(spawner);
      goOn(agent);
      layer = await newLayer(known, 2_000).catch(() => null);
    }
    // The same turn of its loop that made the directory asks for the capture.
    await until('the server waits', () => stateOf(server.pid) === 'S' || null);
    await hold(server.pid);
    goOn(spawner);
    await until('it is sealed', () => existsSync(join(base, 'layers', layer, 'fs')) || null);
    await until('its agent is gone', () => stateOf(agent) === '' || null);
    await kill(victim, spawner);
    goOn(server.pid);
    return { asked };
  },
  'while its source is started again': async (kind: Kind, victim: Victim, id: string) => {
    const attempt = await server.attemptOf(id);
    const spawner = await server.spawner();
    const held = childrenOf(spawner, 'sbx-mounter', 'sbx-launcher');
    for (const pid of held) await hold(pid);
    const asked = ask(kind, id);
    await until('it starts again', async () => {
      const { state } = await server.ask('status', { id: attempt });
      return (state === 'launching' && server.recordOf(attempt).sealed) || null;
    });
    await kill(victim, spawner);
    for (const pid of held) goOn(pid);
    return { asked };
  },
};

/** Its copy is under way and stands still. One that is done before it is caught is thrown away, and asked for again. */
async function copying(
  kind: Kind,
  id: string,
  spawner: number,
): Promise<{ asked: Promise<unknown>; copy: number }> {
  await client.background(id, { command: ['/bin/sh', '-c', TICK] });
  for (;;) {
    const known = server.layers();
    let done = false;
    const asked = ask(kind, id).finally(() => {
      done = true;
    });
    const directory = join(base, 'layers', await newLayer(known));
    const catchIt = () => {
      const copy = childrenOf(spawner, 'sbx-copy').find((pid) => hasOpen(pid, directory));
      if (copy !== undefined) signal(copy, 'SIGSTOP');
      return copy ?? (done ? 0 : null);
    };
    const copy = await until('it is copied', catchIt, { every: 0 });
    await until('it stands still', () => ['t', 'T', ''].includes(stateOf(copy)) || null);
    if (stateOf(copy) !== '') return { asked, copy };
    await asked;
    await removeAll(id);
  }
}

const isBusy = (stage: string) => /copied$/.test(stage);

async function goesOn(id: string, content: string): Promise<void> {
  const { state, failure } = await client.sandboxes.get(id);
  expect(['ready', 'active'], `${failure?.code} ${failure?.detail}`).toContain(state);
  expect(await server.inside(id, LOOK)).toBe(content);
}

async function removeAll(but?: string): Promise<void> {
  const states = ['requested', 'provisioning', 'ready', 'active', 'paused', 'failed'] as const;
  for await (const { sandbox_id } of client.sandboxes.list({ state: [...states] }))
    if (sandbox_id !== but) await client.sandboxes.destroy(sandbox_id);
  for await (const { snapshot_id } of client.snapshots.list()) await client.snapshots.delete(snapshot_id);
}

/** What was begun has ended by itself, one way or the other. */
async function settled(): Promise<void> {
  const look = async () => {
    const moving = client.sandboxes.list({ state: ['requested', 'provisioning', 'destroying'] });
    const taken = (await client.snapshots.list().page()).items;
    const ended = taken.every(({ state }) => state === 'available' || state === 'deleted');
    return ((await moving.page()).items.length === 0 && ended) || null;
  };
  await until('all is settled', look, { every: 50 });
}

/** The program that was copied with it counts further. */
async function ticksOn(id: string): Promise<void> {
  const count = async () => Number(await server.inside(id, 'cat ticks'));
  const before = await count();
  await until('its program goes on', async () => (await count()) > before || null);
}

/** Those that are told to be there, all with the content that was captured. */
async function listedAreWhole(content: string): Promise<void> {
  for await (const { snapshot_id, state } of client.snapshots.list())
    if (state === 'available') await client.snapshots.restore(snapshot_id);
  for await (const { sandbox_id } of client.sandboxes.list({ state: ['ready', 'active'] }))
    await goesOn(sandbox_id, content);
}

async function nothingElseIsLeft(): Promise<void> {
  const asNeeded = () => server.layers().sort().join() === server.needed().join() || null;
  await until('only the layers that are needed are left', asNeeded);
  const copies = childrenOf(await server.spawner(), 'sbx-copy');
  expect(copies.filter((pid) => 'tT'.includes(stateOf(pid)))).toEqual([]);
  await removeAll();
  for (const part of ['layers', 'sandboxes', 'trash'])
    await until(`no ${part} are left`, () => names(join(base, part)).length === 0 || null);
}

/** `kept` outlasts the machine; `limited` has a disk of its own, as an image. */
const PROFILES = {
  kept: { persistence: 'persistent' as const },
  limited: limitsDisks ? { resources: { disk_mb: 64 } } : {},
};

function profileFor(kind: Kind, stage: string): string {
  if (kind === 'snapshot') return 'profile.kept';
  return isBusy(stage) ? 'profile.limited' : 'profile.agent-dev';
}

async function filled(profile: string): Promise<{ id: string; content: string }> {
  const { sandbox_id: id } = await client.sandboxes.create({ profile });
  await server.inside(id, FILL);
  return { id, content: await server.inside(id, LOOK) };
}

describe.skipIf(reason !== null)(`a capture that is cut off${reason === null ? '' : ` (${reason})`}`, () => {
  beforeAll(async () => {
    for (const [name, more] of Object.entries(PROFILES))
      await client.profiles.push({
        id: `profile.${name}`,
        version: '1.0.0',
        extension: 'ext.local',
        ...more,
      });
  });

  // What one leaves is not the next one's.
  afterEach(() => removeAll());

  afterAll(async () => {
    await server.close();
    expect(hostCanary(base)).toBe(before);
  });

  for (const kind of KINDS)
    for (const victim of VICTIMS)
      for (const [stage, cut] of Object.entries(STAGES)) {
        // Where one of them could have told the other.
        if (victim === 'both' && !(kind === 'snapshot' && /is copied|sealed/.test(stage))) continue;
        it(`a ${kind}, by a kill of ${victim === 'both' ? victim : `the ${victim}`}, ${stage}`, async () => {
          const { id, content } = await filled(profileFor(kind, stage));
          const { asked } = await cut(kind, victim, id);
          if (stateOf(server.pid) === '') await server.again();
          await asked;
          await settled();
          await goesOn(id, content);
          if (isBusy(stage)) await ticksOn(id);
          await listedAreWhole(content);
          await nothingElseIsLeft();
        });
      }

  it('a capture is cut off by the end of its source, while it is copied', async () => {
    const { id } = await filled('profile.agent-dev');
    const attempt = await server.attemptOf(id);
    const { asked, copy } = await copying('snapshot', id, await server.spawner());
    // As when its time has come, which the spawner sees to by itself.
    await server.ask('destroy', { id: attempt });
    await until('nobody copies it', () => stateOf(copy) === '' || null);
    await asked;
    await settled();
    const available = (await client.snapshots.list().page()).items.filter(
      ({ state }) => state === 'available',
    );
    expect(available).toEqual([]);
    const failure = async () => (await client.sandboxes.get(id)).failure?.code ?? null;
    expect(await until('it is known as lost', failure, { every: 50 })).toBe('SBX_BACKEND_LOST');
    await nothingElseIsLeft();
  });
});
