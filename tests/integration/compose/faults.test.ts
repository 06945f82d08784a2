import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import type { SpecParts } from './compose-world.ts';
import { context, errorOf, establish, output, owned, repo, specFor } from './compose-world.ts';
import { slowRepo } from './slow-repo.ts';

const missing = whyNoComposeHost();

describe.skipIf(missing !== null)('faults on a host of stacks', { timeout: 300_000 }, () => {
  let host: ComposeHost;
  let extension: ReturnType<typeof createComposeExtension>;
  let simple: SpecParts;
  let compose: string;
  const gone = async (spec: ReturnType<typeof specFor>) => {
    const report = await extension.teardown({ stamp: spec.stamp, handle: null }, context(host.host));
    expect(report).toMatchObject({ gone: true, remaining: [] });
    expect(await owned(extension, host.host)).toEqual([]);
    expect(await host.engine.docker('ps', '-aq')).toBe('');
  };

  beforeAll(async () => {
    host = await startComposeHost('box', { config: { 'live-restore': true } });
    extension = createComposeExtension({ directory: host.directory });
    compose = `services: {web: {image: ${host.engine.image}, init: true, command: [sleep, "9999"], restart: always}}`;
    simple = { recipe: { inputs: { compose } } };
  });

  afterAll(async () => {
    await extension?.close();
    await host?.close();
  });

  it('sshd killed in the middle of an upload: a typed error, and the next teardown finds what was left', async () => {
    const inputs = slowRepo(compose, async () => {
      await host.server.kill();
      await sleep(200);
    });
    const spec = specFor(extension, { inputs });
    const error = await errorOf(extension.provision(spec, context(host.host)));
    expect(error.code).toBe('SBX_HOST_UNREACHABLE');
    expect(error.extras.creation).toBe('maybe_created');
    // While it is away, nobody claims that it is gone.
    const away = await errorOf(extension.teardown({ stamp: spec.stamp, handle: null }, context(host.host)));
    expect(away.code).toBe('SBX_HOST_UNREACHABLE');
    await host.server.start();
    expect(await owned(extension, host.host)).toEqual([spec.stamp.attemptId]);
    await gone(spec);
  });

  it('a Dockerfile for BuildKit on a host whose compose builds without it: the error names BuildKit', async () => {
    const inputs = repo({
      'compose.yaml': 'services: {web: {build: .}}',
      Dockerfile: `FROM ${host.engine.image}\nRUN --mount=type=cache,target=/cache true\n`,
    });
    const spec = specFor(extension, { inputs });
    const error = await errorOf(extension.provision(spec, context(host.host)));
    expect(error.code).toBe('SBX_COMPOSE_INVALID');
    expect(error.detail).toMatch(/^The Dockerfile needs BuildKit/);
    expect(error.remedy).toMatch(/RUN --mount.*compose v2/);
    expect(error.remedy).not.toMatch(/network/);
    await gone(spec);
  });

  it('fields unknown to the compose of the host are left out with a note, or refused before anything is sent', async () => {
    const service = (more: string) =>
      `services: {web: {image: ${host.engine.image}, init: true, command: [sleep, "9999"], ${more}}}`;
    const dropped = service('healthcheck: {test: ["CMD", "true"], start_interval: 1s}, container_name: mine');
    const made = await establish(extension, host.host, { recipe: { inputs: { compose: dropped } } });
    expect(made.ready.notes).toContain('web: left out: container_name.');
    expect(made.ready.notes).toContain(
      'web: left out: healthcheck.start_interval: it needs compose 2.20.2, and the host has 1.29.',
    );
    await made.session.close();
    await gone(made.spec);
    const refused = service('volumes: [{type: tmpfs, target: /x, tmpfs: {mode: 511}}]');
    const spec = specFor(extension, { recipe: { inputs: { compose: refused } } });
    const error = await errorOf(extension.provision(spec, context(host.host)));
    expect(error).toMatchObject({
      code: 'SBX_UNSUPPORTED',
      extras: { creation: 'not_created', field: 'services.web.volumes.0.tmpfs.mode' },
    });
    expect(await owned(extension, host.host)).toEqual([]);
  });

  it('a host that is away before anything began leaves nothing to wonder about', async () => {
    await host.server.kill();
    const spec = specFor(extension, simple);
    const error = await errorOf(extension.provision(spec, context(host.host)));
    expect(error).toMatchObject({ code: 'SBX_HOST_UNREACHABLE', extras: { creation: 'not_created' } });
    await host.server.start();
    await gone(spec);
  });

  it('a connection lost during a program is reported, and the next program uses a new connection', async () => {
    const { spec, session } = await establish(extension, host.host, simple);
    const running = await session.spawn({
      argv: ['sleep', '60'],
      env: {},
      cwd: null,
      user: null,
      timeoutSeconds: null,
      terminal: null,
      stdin: false,
      background: false,
    });
    const ended = running.exit.then(
      () => 'ended',
      () => 'lost',
    );
    await host.server.kill();
    expect(await ended).toBe('lost');
    await host.server.start();
    expect(await output(session, 'echo again')).toBe('again');
    await gone(spec);
  });

  it('an engine that is restarted under a stack: the stack is found again', async () => {
    const { spec, handle } = await establish(extension, host.host, simple);
    await host.engine.stopDaemon();
    const error = await errorOf(extension.provision(specFor(extension, simple), context(host.host)));
    expect(error.code).toBe('SBX_HOST_UNREACHABLE');
    await host.engine.startDaemon();
    const ready = await extension.waitReady(handle, context(host.host));
    expect(ready.reachability.services).toMatchObject([{ name: 'web', state: 'running' }]);
    for (const attempt of await owned(extension, host.host)) {
      const stamp = { owner: 'tests', attemptId: attempt, sandboxUid: attempt.replace(/-g1-a1$/, '') };
      expect((await extension.teardown({ stamp, handle: null }, context(host.host))).gone).toBe(true);
    }
    await gone(spec);
  });

  it('a full disk is a typed refusal that leaves nothing', async () => {
    const small = join(host.engine.directory, 'small');
    mkdirSync(small);
    await host.engine.enter('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', small);
    const tight = createComposeExtension({ directory: small });
    const spec = specFor(tight, { inputs: slowRepo(compose, async () => {}) });
    const error = await errorOf(tight.provision(spec, context(host.host)));
    expect(error.code).toBe('SBX_BACKEND_QUOTA');
    expect(error.detail).toContain('disk');
    expect(await tight.teardown({ stamp: spec.stamp, handle: null }, context(host.host))).toMatchObject({
      gone: true,
    });
    expect(await host.engine.enter('ls', join(small, 'stacks'))).toBe('');
    await tight.close();
    await host.engine.enter('umount', small);
  });
});
