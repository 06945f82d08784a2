/** What happens to sandboxes when the engine, the control plane or somebody else on the engine does something. */
import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';

const whyNot = whyNoDockerd();
const worlds: DockerWorld[] = [];
/** On an engine of its own, which the test may restart. */
async function open(...args: Parameters<typeof DockerWorld.start>): Promise<DockerWorld> {
  const world = await DockerWorld.start(...args);
  worlds.push(world);
  return world;
}

let shared: Promise<Dockerd> | null = null;
const guests: DockerWorld[] = [];
/** On the engine of all tests that leave it running; it has no container at first. */
async function share(options: Parameters<typeof DockerWorld.start>[0] = {}): Promise<DockerWorld> {
  shared ??= startDockerd();
  const world = new DockerWorld(await shared, options);
  await world.open();
  guests.push(world);
  return world;
}

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
  for (const { extension, engine } of guests.splice(0)) {
    await extension.close();
    const left = await engine.docker('ps', '-aq');
    if (left !== '') await engine.docker('rm', '-f', ...left.split('\n'));
  }
});
afterAll(async () => (await shared)?.close());

async function errorOf(work: Promise<unknown>): Promise<SandboxerError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SandboxerError);
  return error as SandboxerError;
}

describe.skipIf(whyNot !== null)(`faults around ext.docker${whyNot ? ` (${whyNot})` : ''}`, () => {
  it('the engine is restarted, with live restore: sandboxes live on', async () => {
    const world = await open({}, { config: { 'live-restore': true } });
    const living = await world.establish();
    await output(living.session, 'echo before > kept');
    await world.engine.restartDaemon('SIGKILL');
    // The channel does not go through the engine: it has not even noticed.
    expect(await output(living.session, 'cat kept')).toBe('before');
    const session = await world.extension.connect(living.handle, world.context);
    expect(await output(session, 'cat kept')).toBe('before');
    expect(await world.owned()).toEqual([living.spec.stamp.attemptId]);
    await world.end(living);
    expect(await world.owned()).toEqual([]);
  });

  it('the engine is restarted without: what was to be kept starts again, the rest is lost', {
    timeout: 180_000,
  }, async () => {
    const world = await open();
    const kept = await world.establish({ persistence: 'persistent' });
    const ephemeral = await world.establish();
    const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'told' }];
    const secretRefs = [{ name: 'TOKEN', delivery: 'env' as const, provider: 'env' }];
    const trusted = await world.establish({ persistence: 'persistent', secretRefs }, { secrets });
    await output(kept.session, 'echo before > kept');
    await output(trusted.session, 'echo before > kept');
    await world.engine.restartDaemon();
    const conditions = new Map<string, unknown>();
    for await (const { stamp, condition } of world.extension.listOwned(world.owner, world.context))
      conditions.set(stamp.attemptId, condition);
    const conditionOf = ({ spec }: typeof kept) => conditions.get(spec.stamp.attemptId);
    expect([kept, ephemeral, trusted].map(conditionOf)).toEqual(['stopped', 'ended', 'stopped']);
    // Its secrets were in its memory: it starts with them or not at all.
    const waits = await errorOf(world.extension.connect(trusted.handle, world.context));
    expect({ code: waits.code, remedy: waits.remedy }).toEqual({
      code: 'SBX_INVALID_STATE',
      remedy: 'Resume it: sandboxer resume ID.',
    });
    const changed = [{ name: 'TOKEN', delivery: 'env' as const, value: 'told anew' }];
    await world.extension.resume(trusted.handle, world.context, changed);
    const resumed = await world.extension.connect(trusted.handle, world.context);
    expect(await output(resumed, 'cat kept; echo $TOKEN')).toBe('before\ntold anew');
    await resumed.close();
    await world.end(trusted);
    const again = await world.extension.connect(kept.handle, world.context);
    expect(await output(again, 'cat kept')).toBe('before');
    const error = await errorOf(world.extension.connect(ephemeral.handle, world.context));
    expect(error.code).toBe('SBX_BACKEND_LOST');
    await world.end(kept);
    await world.end(ephemeral);
    expect(await world.engine.docker('ps', '-aq')).toBe('');
    expect(readdirSync(world.options.directory)).toEqual([]);
  });

  it('the engine is away: a typed error, and everything is found again', async () => {
    const world = await open({}, { config: { 'live-restore': true } });
    const living = await world.establish();
    await world.engine.stopDaemon();
    expect((await world.extension.probe(world.context)).status).not.toBe('healthy');
    const error = await errorOf(world.extension.provision(world.spec(), world.context));
    expect(error.code).toBe('SBX_EXTENSION_FAILED');
    const gone = await errorOf(
      world.extension.teardown({ stamp: living.spec.stamp, handle: living.handle }, world.context),
    );
    expect(gone.code).toBe('SBX_EXTENSION_FAILED');
    await world.engine.startDaemon();
    expect((await world.extension.probe(world.context)).status).toBe('healthy');
    await world.end(living);
  });

  it('the control plane is restarted: what runs is adopted', async () => {
    const world = await share();
    const living = await world.establish();
    const background = await living.session.spawn({
      argv: ['/bin/sh', '-c', 'sleep 2; echo done > done; exec sleep 600'],
      env: {},
      cwd: null,
      user: null,
      timeoutSeconds: null,
      terminal: null,
      stdin: false,
      background: true,
    });
    await world.restart();
    const session = await world.extension.connect(living.handle, world.context);
    const running = (await session.processes?.())?.find(({ process_id }) => process_id === background.id);
    expect(running?.running).toBe(true);
    await expect.poll(() => output(session, 'cat done'), { timeout: 60_000 }).toBe('done');
    expect(await world.owned()).toEqual([living.spec.stamp.attemptId]);
    await world.end(living);
  });

  it('an image that is missing is refused, and nothing is made', async () => {
    const world = await share();
    const error = await errorOf(
      world.extension.provision(world.spec({ image: 'no/such:image' }), world.context),
    );
    expect(error.code).toBe('SBX_IMAGE_UNAVAILABLE');
    expect(error.extras.creation).toBe('not_created');
    expect(error.remedy).toContain('docker pull no/such:image');
    expect(await world.engine.docker('ps', '-aq')).toBe('');
  });

  it('an image that vanished from the engine is looked for again', async () => {
    const world = await share();
    await world.end(await world.establish());
    const prepared = await world.engine.docker('images', '-q', 'sandboxer-prepared');
    await world.engine.docker('rmi', '-f', prepared);
    const living = await world.establish();
    expect(await output(living.session, 'echo fine')).toBe('fine');
    await world.end(living);
  });

  it('a container that is killed from outside is lost, and torn down', async () => {
    const world = await share();
    const living = await world.establish();
    const { container } = living.handle.data as { container: string };
    await world.engine.docker('kill', container);
    await expect
      .poll(async () => (await errorOf(world.extension.connect(living.handle, world.context))).code, {
        timeout: 60_000,
      })
      .toBe('SBX_BACKEND_LOST');
    await world.end(living);
    expect(await world.engine.docker('ps', '-aq')).toBe('');
  });

  it('two control planes share an engine and leave foreign containers alone', {
    timeout: 180_000,
  }, async () => {
    const one = await share({ warm: 1 });
    const two = new DockerWorld(one.engine, { warm: 1 }, 'another-installation');
    await two.open();
    const foreign = await one.engine.docker(
      'run',
      '-d',
      '--name',
      'sbx.foreign',
      one.engine.image,
      'sleep',
      '900',
    );
    const labelled = await one.engine.docker(
      ...['run', '-d', '--label', `io.sandboxer.owner=${one.owner}`, one.engine.image, 'sleep', '900'],
    );
    const first = await one.establish();
    const second = await two.establish();
    expect(await one.owned()).toEqual([first.spec.stamp.attemptId]);
    expect(await two.owned()).toEqual([second.spec.stamp.attemptId]);
    // By the other one's stamp under our own name: nothing is ours there.
    const stamp = { ...second.spec.stamp, owner: one.owner };
    const report = await one.extension.teardown({ stamp, handle: null }, one.context);
    expect(report).toMatchObject({ gone: true, removed: [] });
    await one.restart();
    expect(await one.owned()).toEqual([first.spec.stamp.attemptId]);
    await one.end(first);
    await sleep(200);
    expect(await output(second.session, 'echo alive')).toBe('alive');
    const left = await one.engine.docker('ps', '-q', '--no-trunc');
    expect(left).toContain(foreign);
    expect(left).toContain(labelled);
    await two.end(second);
    await two.extension.close();
  });

  it('a foreign container under our name is never taken over', async () => {
    const world = await share();
    const spec = world.spec();
    const name = `sbx.docker-tests.${spec.stamp.sandboxUid}.${spec.stamp.attemptId}`;
    const foreign = await world.engine.docker(
      'run',
      '-d',
      '--name',
      name,
      world.engine.image,
      'sleep',
      '900',
    );
    const error = await errorOf(world.extension.provision(spec, world.context));
    expect(error.code).toBe('SBX_CONFLICT');
    const report = await world.extension.teardown({ stamp: spec.stamp, handle: null }, world.context);
    expect(report.removed).toEqual([]);
    expect(await world.engine.docker('ps', '-q', '--no-trunc')).toBe(foreign);
  });

  it('snapshots of ext.docker leave no image behind', async () => {
    const world = await share();
    const source = await world.establish();
    await output(source.session, 'echo one > file');
    const spec = { snapshotId: 'snap_leaves_nothing', name: null, owner: world.owner };
    const { ref, sizeBytes } = await world.extension.snapshot(source.handle, spec, world.context);
    expect(sizeBytes).toBeGreaterThan(0);
    const restoredSpec = world.spec();
    const restored = await world.reach(
      restoredSpec,
      await world.extension.restore(restoredSpec, ref, world.context),
    );
    const forkSpec = world.spec();
    const fork = await world.reach(
      forkSpec,
      await world.extension.fork(restored.handle, forkSpec, world.context),
    );
    expect(await output(fork.session, 'cat file')).toBe('one');
    await world.extension.deleteSnapshot(ref, spec, world.context);
    expect(await output(restored.session, 'cat file')).toBe('one');
    for (const living of [source, restored, fork]) await world.end(living);
    await expect
      .poll(() => world.engine.docker('images', '-a', '--format', '{{.Repository}}'), { timeout: 30_000 })
      .toBe(['sandboxer-prepared', 'sandboxer-test/busybox'].join('\n'));
    expect(existsSync(world.options.directory)).toBe(true);
  });

  it('a pool hands each container out once, and leaves none behind', async () => {
    const world = await share({ warm: 2 });
    await world.owned();
    const warm = () => world.engine.docker('ps', '-q', '--filter', 'name=sbx-warm');
    await expect.poll(warm, { timeout: 60_000 }).not.toBe('');
    const all = await Promise.all([1, 2, 3, 4].map(() => world.establish({ variables: { WHO: 'me' } })));
    for (const living of all) expect(await output(living.session, 'echo $WHO')).toBe('me');
    expect(new Set(await world.owned()).size).toBe(4);
    const limited = await world.establish({
      resources: { cpu: 0.5, memory_mb: 64, pids: 50, disk_mb: null, open_files: null, gpu: null },
    });
    const { HostConfig } = (await world.inspect(limited)) as { HostConfig: Record<string, number> };
    expect(HostConfig.Memory).toBe(64 * 1_048_576);
    expect(HostConfig.PidsLimit).toBe(50);
    for (const living of [...all, limited]) await world.end(living);
    await world.restart();
    await world.owned();
    await world.extension.close();
    await expect.poll(() => world.engine.docker('ps', '-aq'), { timeout: 30_000 }).toBe('');
    await world.open();
  });
});
