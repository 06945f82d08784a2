/**
 * What was left behind on a real engine, and beside it what is not ours: containers and a compose project of nobody we
 * know, and the sandboxes of another control plane. All of that must be there afterwards as it was before.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import type { Extension, Handle, Stamp } from '../../../src/core/ports/extension.ts';
import { silentLog } from '../../../src/core/ports/log.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { createDockerExtension } from '../../../src/extensions/docker/create.ts';
import { createSshExtension } from '../../../src/extensions/ssh/create.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import { systemClock } from '../../../src/main/ports/system-clock.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import { defaultRecipe } from '../../../src/testing/conformance/default-recipe.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { agentBinary } from '../agent/running-agent.ts';
import { repo } from '../compose/compose-world.ts';

const missing = whyNoComposeHost();
const FOREIGN = 'another-installation';

describe.skipIf(missing !== null)('stale objects on a host', { timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-stale-'));
  let host: ComposeHost;
  let server: RunningServer;
  let client: SandboxerClient;
  let owner: string;
  let extensions: Record<'docker' | 'compose' | 'ssh', Extension>;

  const context = (on: Extension) => ({
    signal: new AbortController().signal,
    clock: systemClock,
    log: silentLog,
    host: on.header.runsOn === 'hosts' ? { ...host.host, id: 'box' } : null,
  });

  /** Makes something with that stamp, past every record of the server. */
  async function leave(on: Extension, stamp: Stamp): Promise<Handle> {
    const stack = `services:\n  idle:\n    image: ${host.engine.image}\n    command: [sleep, "600"]\n`;
    return await on.provision(
      {
        stamp,
        sandboxId: stamp.sandboxUid,
        workspaceId: 'w',
        generation: 1,
        recipe: defaultRecipe(on.header.capabilities),
        labels: {},
        secrets: [],
        inputs: repo({ 'docker-compose.yml': stack }),
        endsAt: Date.now() + 600_000,
      },
      context(on),
    );
  }

  const stampOf = (name: string, by = owner): Stamp => ({
    owner: by,
    sandboxUid: name,
    attemptId: `${name}-g1-a1`,
  });

  /** Everything on the engine that is not ours, by identity and state. */
  async function foreign(): Promise<string[]> {
    const format = '{{.ID}} {{.Names}} {{.State}} {{.Label "io.sandboxer.owner"}}';
    const containers = await host.engine.docker('ps', '-a', '--no-trunc', '--format', format);
    const networks = await host.engine.docker('network', 'ls', '--format', '{{.ID}} {{.Name}}');
    const volumes = await host.engine.docker('volume', 'ls', '--format', '{{.Name}}');
    const ours = (line: string) => line.endsWith(` ${owner}`);
    const lines = [...containers.split('\n'), ...networks.split('\n'), ...volumes.split('\n')];
    return lines.filter((line) => line !== '' && !ours(line)).sort();
  }

  beforeAll(async () => {
    host = await startComposeHost('box');
    extensions = {
      docker: await createDockerExtension({
        url: `unix://${host.engine.socket}`,
        tls: null,
        directory: join(directory, 'doors'),
        defaultImage: host.engine.image,
        images: { allow: ['*'], pull: 'never', requireDigest: false, logins: {} },
        network: null,
        warm: 0,
      }),
      compose: createComposeExtension({ directory: host.directory }),
      ssh: createSshExtension({ agents: { [machine()]: agentBinary() } }),
    };
    const env = { SANDBOXER_STATE_DIR: join(directory, 'state'), SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, {
      // The sweep would be quicker than we are.
      timing: { reconcile: '1h' },
      extensions: { local: { enabled: false }, docker: { enabled: false }, compose_ssh: { enabled: false } },
    });
    server = await serve({ config, env, extensions: Object.values(extensions) });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    owner = server.control.owner;
    const { destination, port, user, hostKeys, identityFile } = host.server.access();
    await client.hosts.add({
      id: 'box',
      ssh: {
        destination,
        port: port as number,
        user: user as string,
        host_keys: [...hostKeys],
        identity_file: identityFile as string,
      },
    });
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    await host?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('stale objects are listed with evidence and age, and only ours are removed', async () => {
    const { docker, compose, ssh } = extensions;
    const { engine } = host;
    // Nobody's, of another tool's, and with labels that only look like ours.
    await engine.docker('run', '-d', '--name', 'plain', engine.image, 'sleep', '600');
    await engine.docker('run', '-d', '--name', 'sbx.look.a-like.x-g1-a1', engine.image, 'sleep', '600');
    await engine.docker(
      'run',
      '-d',
      '--name',
      'nobody',
      '-l',
      'io.sandboxer.owner=',
      engine.image,
      'sleep',
      '600',
    );
    await engine.docker(
      'run',
      '-d',
      '--name',
      'halfmark',
      '-l',
      'io.sandboxer.attempt-id=halfmark',
      engine.image,
      'sleep',
      '600',
    );
    const project = join(directory, 'foreign-project');
    mkdirSync(project);
    writeFileSync(
      join(project, 'docker-compose.yml'),
      `services:\n  theirs:\n    image: ${engine.image}\n    command: [sleep, "600"]\n    volumes: ["data:/data"]\nvolumes:\n  data: {}\n`,
    );
    await engine.enter(
      'env',
      `DOCKER_HOST=unix://${engine.socket}`,
      'docker-compose',
      '--project-directory',
      project,
      '-f',
      join(project, 'docker-compose.yml'),
      '-p',
      'sbxforeign',
      'up',
      '-d',
    );
    for (const on of [docker, compose, ssh])
      await leave(on, stampOf(`theirs-${on.header.id.slice(4)}`, FOREIGN));
    const before = await foreign();
    expect(before.length).toBeGreaterThan(7);

    // Ours, and on no record.
    for (const on of [docker, compose, ssh]) await leave(on, stampOf(`lost-${on.header.id.slice(4)}`));
    // Ours, on record as destroyed, and there again.
    await client.request({ method: 'POST', path: '/v1/profiles', json: PROFILE });
    const made = await client.sandboxes.create({ profile: PROFILE.id, id: 'undead' }, { wait: 'ready' });
    await client.sandboxes.destroy('undead', { wait: 'destroyed' });
    const attempt = (await server.control.store.read('t', (tx) => tx.attempts.recent(1)))[0];
    expect(attempt?.state).toBe('gone');
    await leave(docker, {
      owner,
      sandboxUid: attempt?.sandboxUid as string,
      attemptId: attempt?.attemptId as string,
    });
    expect(made.sandbox_id).toBe('undead');

    const { items, unseen } = await client.stale.inspect();
    expect(unseen).toEqual([]);
    const kinds = Object.fromEntries(
      items.map(({ kind, what, extension }) => [`${extension} ${what}`, kind]),
    );
    expect(kinds).toMatchObject({
      'ext.docker lost-docker-g1-a1': 'orphaned',
      'ext.compose-ssh lost-compose-ssh-g1-a1': 'orphaned',
      'ext.ssh lost-ssh-g1-a1': 'orphaned',
      'ext.docker undead': 'half-destroyed',
      'ext.docker theirs-docker-g1-a1': 'unknown-owner',
      'ext.compose-ssh theirs-compose-ssh-g1-a1': 'unknown-owner',
      'ext.ssh theirs-ssh-g1-a1': 'unknown-owner',
      'ext.docker nobody': 'unknown-owner',
      'ext.compose-ssh halfmark': 'unknown-owner',
    });
    expect(items).toHaveLength(9);
    const orphan = items.find(({ what }) => what === 'lost-compose-ssh-g1-a1');
    expect(orphan).toMatchObject({ host: 'box', owner });
    expect(orphan?.age_seconds).toBeGreaterThanOrEqual(0);
    expect(orphan?.evidence.join(' ')).toMatch(/not on record.*container .*network/);
    const another = items.find(({ what }) => what === 'theirs-ssh-g1-a1');
    expect(another).toMatchObject({ owner: FOREIGN });

    const dry = await client.stale.reap();
    expect(dry.dry_run).toBe(true);
    expect(new Set(dry.items.map(({ outcome }) => outcome))).toEqual(new Set(['would-remove', 'left-alone']));
    expect((await client.stale.inspect()).items).toHaveLength(9);

    const reaped = await client.stale.reap({ dry_run: false });
    const outcomes = reaped.items.map(({ kind, outcome }) => `${kind} ${outcome}`).sort();
    expect(outcomes).toEqual([
      'half-destroyed removed',
      ...Array(3).fill('orphaned removed'),
      ...Array(5).fill('unknown-owner left-alone'),
    ]);
    const left = (await client.stale.inspect()).items;
    expect(left.map(({ kind }) => kind)).toEqual(Array(5).fill('unknown-owner'));
    // Nothing of theirs was stopped, made anew or removed.
    expect(await foreign()).toEqual(before);
    for (const on of [docker, compose, ssh]) {
      const theirs: string[] = [];
      for await (const { stamp } of on.listOwned(FOREIGN, context(on))) theirs.push(stamp.attemptId);
      expect(theirs).toEqual([`theirs-${on.header.id.slice(4)}-g1-a1`]);
    }
  });

  it('snapshots without a record are removed, and those of other owners are not', async () => {
    const { docker, compose } = extensions;
    const kept: string[] = [];
    for (const on of [docker, compose]) {
      const name = on.header.id.slice(4);
      const stamp = stampOf(`source-${name}`);
      const handle = await leave(on, stamp);
      await on.waitReady(handle, context(on));
      for (const [snapshotId, by] of [
        [`snap_lost-${name}`, owner],
        [`snap_theirs-${name}`, FOREIGN],
      ] as const)
        await on.snapshot?.(handle, { snapshotId, name: null, owner: by }, context(on));
      await on.teardown({ stamp, handle }, context(on));
      kept.push(`snap_theirs-${name}`);
    }
    mkdirSync(join(host.directory, 'snapshots', 'of-an-older-time'));
    await client.sandboxes.create({ profile: PROFILE.id, id: 'source' });
    const living = await client.sandboxes.snapshot('source', { name: 'wanted' });
    const snapshotsOf = async (on: Extension, by: string) => {
      const found: string[] = [];
      for await (const { snapshotId } of on.listSnapshots?.(by, context(on)) ?? []) found.push(snapshotId);
      return found.sort();
    };

    const of = (items: readonly { what: string }[]) => items.filter(({ what }) => /^snapshot/.test(what));
    const told = of((await client.stale.inspect()).items);
    expect(told).toMatchObject([
      { kind: 'orphaned', what: 'snapshot snap_lost-docker', owner },
      { kind: 'orphaned', what: 'snapshot snap_lost-compose-ssh', owner, host: 'box' },
      { kind: 'unknown-owner', what: 'snapshot snap_theirs-compose-ssh', owner: FOREIGN },
      { kind: 'unknown-owner', what: expect.stringContaining('of-an-older-time'), owner: null },
    ]);
    const reaped = of((await client.stale.reap({ dry_run: false })).items);
    expect(reaped.map((item) => (item as unknown as { outcome: string }).outcome)).toEqual([
      'removed',
      'removed',
      'left-alone',
      'left-alone',
    ]);
    expect(await snapshotsOf(docker, owner)).toEqual([living.snapshot_id]);
    expect(await snapshotsOf(compose, owner)).toEqual([]);
    expect([...(await snapshotsOf(docker, FOREIGN)), ...(await snapshotsOf(compose, FOREIGN))]).toEqual(kept);
    await client.sandboxes.destroy('source');
  });
});

const PROFILE = {
  id: 'profile.on-engine',
  version: '1.0.0',
  extension: 'ext.docker',
  isolation: { level: 'container' },
  ttl: { default: '10m', max: '1h' },
};
