/** Stacks on a real rootless engine of the ssh user, beside the engine of root. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readHostFacts } from '../../../src/core/hosts/host-facts.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { hostFactsScript } from '../../../src/extensions/shared/ssh/host-facts-script.ts';
import { SshHosts } from '../../../src/extensions/shared/ssh/ssh-hosts.ts';
import type { RootlessHost } from '../../support/rootless-host.ts';
import { startRootlessHost, whyNoRootlessHost } from '../../support/rootless-host.ts';
import type { SpecParts } from './compose-world.ts';
import { context, errorOf, output, owned, repo, specFor } from './compose-world.ts';

type Compose = ReturnType<typeof createComposeExtension>;

const missing = whyNoRootlessHost();
if (missing !== null) describe.skip(`compose: rootless engines: ${missing}`, () => it('', () => {}));

type Living = { readonly spec: ReturnType<typeof specFor> };

describe.skipIf(missing !== null)('compose: rootless engines', { timeout: 300_000 }, () => {
  let host: RootlessHost;
  let open: Compose[] = [];
  const extension = (options: Parameters<typeof createComposeExtension>[0] = {}) => {
    const made = createComposeExtension({ directory: host.directory, ...options });
    open.push(made);
    return made;
  };
  const close = async () => {
    for (const one of open) await one.close();
    open = [];
  };
  const make = async (made: Compose, parts: SpecParts) => {
    const spec = specFor(made, parts);
    const handle = await made.provision(spec, context(host.host));
    const ready = await made.waitReady(handle, context(host.host));
    return { spec, handle, ready, session: await made.connect(handle, context(host.host)) };
  };
  const stack = (text = '') => ({
    inputs: repo({
      'compose.yaml': `services: {a: {image: "${host.engine.image}", user: "0:0", init: true, command: [sleep, "9999"], volumes: [".:/src", "v:/v"]${text}}}\nvolumes: {v: {}}`,
    }),
  });
  const recordsOf = () => {
    const stacks = join(host.directory, 'stacks');
    return readdirSync(stacks).map((name) => readFileSync(join(stacks, name, 'engine'), 'utf8').trim());
  };
  const socket = () => `unix://${join(host.runtime, 'docker.sock')}`;

  beforeAll(async () => {
    host = await startRootlessHost();
  });
  afterAll(async () => {
    await close();
    await host?.close();
  });

  const down = async (made: Compose, { spec }: Living) =>
    await made.teardown({ stamp: spec.stamp, handle: null }, context(host.host));

  it('compose: a stack without a rootless engine runs on that of root, and is reported as for trusted stacks', async () => {
    const made = extension();
    expect((await made.probe(context(host.host))).detail).toContain('rootless: none');
    const living = await make(made, stack());
    expect(recordsOf()).toEqual(['rootful -']);
    expect(living.ready.notes.join(' ')).toContain('For stacks you trust');
    expect(await down(made, living)).toMatchObject({ gone: true });
    await close();
  });

  it('compose: a rootless engine that cannot pause a container is not declared, and no stack is placed on it', async () => {
    await host.startRootless({ pause: false });
    const made = extension({ engine: 'rootless' });
    const { detail } = await made.probe(context(host.host));
    expect(detail).toMatch(/rootless: none: .*cannot pause a container/);
    expect(existsSync(join(host.home, '.sandboxer', 'rootless-engine'))).toBe(false);
    expect(await errorOf(make(made, stack()))).toMatchObject({
      code: 'SBX_UNSUPPORTED',
      extras: { creation: 'not_created' },
    });
    expect(await host.docker('ps', '-aq')).toBe('');
    await close();
    await host.stopRootless();
  });

  it('compose: an engine of root at the socket of a rootless one is not taken for a rootless one', async () => {
    const fake = join(host.runtime, 'docker.sock');
    symlinkSync(host.engine.socket, fake);
    const made = extension({ engine: 'rootless' });
    expect((await made.probe(context(host.host))).detail).toContain('rootless: none');
    expect(await errorOf(make(made, stack()))).toMatchObject({ code: 'SBX_UNSUPPORTED' });
    rmSync(fake);
    await close();
  });

  it('compose: a stack keeps the engine that it was made on, after a rootless one has come', async () => {
    const before = extension();
    const old = await make(before, stack());
    await close();
    await host.startRootless();

    const made = extension({ engine: 'rootless' });
    expect((await made.probe(context(host.host))).detail).toMatch(
      /rootless engine \S+ \(a container was started; enforces /,
    );
    const young = await make(made, stack());
    expect(recordsOf().sort()).toEqual(['rootful -', `rootless ${socket()}`]);
    expect(await owned(made, host.host)).toEqual(
      expect.arrayContaining([old.spec.stamp.attemptId, young.spec.stamp.attemptId]),
    );
    const session = await made.connect(old.handle, context(host.host));
    expect(await output(session, 'cat /proc/self/uid_map')).toMatch(/^0\s+0\s/);
    await made.pause(old.handle, context(host.host));
    await made.resume(old.handle, context(host.host));
    const taking = { snapshotId: 'old', name: null, owner: 'tests' };
    const { ref } = await made.snapshot(old.handle, taking, context(host.host));
    const again = specFor(made, {});
    expect(await errorOf(made.restore(again, ref, context(host.host)))).toMatchObject({
      code: 'SBX_UNSUPPORTED',
    });
    await made.teardown({ stamp: again.stamp, handle: null }, context(host.host));
    await made.deleteSnapshot(ref, taking, context(host.host));
    expect(await down(made, old)).toMatchObject({ gone: true, remaining: [] });
    expect(await host.engine.docker('ps', '-aq')).toBe('');
    expect(await output(young.session, 'echo alive')).toBe('alive');
    expect(await down(made, young)).toMatchObject({ gone: true, remaining: [] });
    expect(await host.docker('ps', '-aq')).toBe('');
    expect(recordsOf()).toEqual([]);
    await close();
  });

  it('compose: auto takes a rootless engine where it enforces memory and pids, and says why where it does not', async () => {
    await host.startRootless();
    const [memory, pids] = (await host.docker('info', '--format', '{{.MemoryLimit}} {{.PidsLimit}}')).split(
      ' ',
    );
    const enforces = memory === 'true' && pids === 'true';
    const made = extension();
    const living = await make(made, stack());
    expect(recordsOf()).toEqual([enforces ? `rootless ${socket()}` : 'rootful -']);
    if (!enforces)
      expect(living.ready.notes.join(' ')).toMatch(
        /rootless engine of the host was not chosen: it does not enforce .*pids/,
      );
    await down(made, living);
    await close();
  });

  it('compose: on a rootless engine root is the ssh user, and files, logs, ports, pause, snapshot and fork work', async () => {
    await host.startRootless();
    const made = extension({ engine: 'rootless' });
    const ports = ', expose: ["80"], ports: ["80"]';
    const living = await make(made, stack(ports));
    const { session, ready } = living;
    expect(ready.notes.join(' ')).toContain('root of a container is the ssh user of the host');
    expect(await output(session, 'cat /proc/self/uid_map')).toMatch(/^0\s+41958\s+1\b/);
    expect(await host.engine.docker('ps', '-q')).toBe('');
    // Files of ids that are not the ssh user's own, which that user could not read or remove by itself.
    const script =
      'mkdir /src/d && echo own >/src/d/x && chmod 700 /src/d && chown -R 99:99 /src/d && echo kept >/v/row && chown 99:99 /v/row';
    expect(await output(session, `${script} && echo done`)).toBe('done');
    expect(ready.reachability.endpoints).toMatchObject([{ port: 80 }]);
    expect(await host.engine.enter('sh', '-c', `cat /proc/net/tcp`)).toMatch(/0100007F:/);

    await made.pause(living.handle, context(host.host));
    expect(await host.docker('ps', '--filter', 'status=paused', '-q')).not.toBe('');
    await made.resume(living.handle, context(host.host));
    const log = await session.services?.logs('a', { tail: null, follow: false });
    await expect(log?.exit).resolves.toMatchObject({ code: 0 });

    const taking = { snapshotId: 'one', name: null, owner: 'tests' };
    const { ref } = await made.snapshot(living.handle, taking, context(host.host));
    const copies = [specFor(made, {}), specFor(made, {})] as const;
    const handles = [
      await made.restore(copies[0], ref, context(host.host)),
      await made.fork(living.handle, copies[1], context(host.host)),
    ];
    for (const handle of handles) {
      await made.waitReady(handle, context(host.host));
      const copy = await made.connect(handle, context(host.host));
      expect(
        await output(copy, 'cat /src/d/x /v/row; stat -c %u /src/d/x /v/row; cat /proc/self/uid_map'),
      ).toMatch(/^own\nkept\n99\n99\n\s*0\s+41958/);
      await copy.close();
    }
    await made.deleteSnapshot(ref, taking, context(host.host));
    for (const stamp of [living.spec.stamp, ...copies.map((spec) => spec.stamp)])
      expect(await made.teardown({ stamp, handle: null }, context(host.host))).toMatchObject({
        gone: true,
        remaining: [],
      });
    expect(await host.docker('ps', '-aq')).toBe('');
    expect(await host.docker('volume', 'ls', '-q')).toBe('');
    expect(await host.docker('image', 'ls', '-q', '--filter', 'reference=sandboxer-s*')).toBe('');
    expect(readdirSync(join(host.directory, 'snapshots'))).toEqual([]);
    await close();
  });

  it('compose: on a rootless engine even a privileged container with the whole host mounted reads no file of root', async () => {
    await host.startRootless();
    const secret = join(host.engine.directory, 'of-root');
    writeFileSync(secret, 'a file of root\n', { mode: 0o600 });
    const text = `services: {a: {image: "${host.engine.image}", user: "0:0", privileged: true, init: false, command: [sleep, "9999"], volumes: ["/:/host"]}}`;
    const made = extension({ engine: 'rootless' });
    const recipe = { elevated: true };
    const living = await make(made, { inputs: repo({ 'compose.yaml': text }), recipe });
    expect(
      await output(living.session, `cat /host${secret}; cat /host/etc/shadow; echo x >/host/usr/x`),
    ).toMatch(/^(?:.*Permission denied.*\n?){3}$/);
    expect(await down(made, living)).toMatchObject({ gone: true });
    await close();
  });

  it('inspect host: a rootless engine is reported with its containers, and as a wall once a container was started', async () => {
    await host.startRootless();
    const hosts = new SshHosts();
    const facts = async () => {
      const access = host.host.ssh;
      if (access === null) throw new Error('the host has no address');
      const command = ['sh', '-c', hostFactsScript, 'sh', 'tests'];
      const { stdout } = await hosts.get('box', access).run(command, { creation: 'not_created' });
      return readHostFacts(stdout.toString());
    };
    const proof = join(host.home, '.sandboxer', 'rootless-engine');
    rmSync(proof);
    expect((await facts()).get('docker_rootless')).toMatchObject([expect.stringMatching(/^\d+\./)]);
    expect((await facts()).has('rootless_engine')).toBe(false);
    const made = extension({ engine: 'rootless' });
    const living = await make(made, stack());
    const told = await facts();
    expect(told.get('rootless_engine')).toEqual(['yes']);
    expect(told.get('containers_ours')).toEqual(['1']);
    await down(made, living);
    await hosts.close();
    await close();
  });

  it('compose: a limit that a rootless engine does not enforce is refused before anything is made', async () => {
    await host.startRootless();
    const info = await host.docker('info', '--format', '{{.MemoryLimit}}');
    if (info === 'true') return;
    const made = extension({ engine: 'rootless' });
    const resources = { ...specFor(made, {}).recipe.resources, memory_mb: 64 };
    expect(await errorOf(make(made, { ...stack(), recipe: { resources } }))).toMatchObject({
      code: 'SBX_UNSUPPORTED',
      extras: { creation: 'not_created' },
    });
    expect(await host.docker('ps', '-aq')).toBe('');
    await close();
  });

  it('compose: a login that may use no engine of root has the rootless one', async () => {
    await host.startRootless();
    host.letIn(false);
    const made = extension({ engine: 'rootless' });
    expect((await made.probe(context(host.host))).detail).toContain('no rootful engine');
    const living = await make(made, stack());
    expect(await output(living.session, 'echo here')).toBe('here');
    expect(await down(made, living)).toMatchObject({ gone: true });
    host.letIn(true);
    await close();
  });

  it('compose: a stack whose directory is lost is found and removed on the rootless engine', async () => {
    await host.startRootless();
    const made = extension({ engine: 'rootless' });
    const living = await make(made, stack());
    await living.session.close();
    for (const name of readdirSync(join(host.directory, 'stacks')))
      rmSync(join(host.directory, 'stacks', name), { recursive: true });
    expect(await owned(made, host.host)).toEqual([living.spec.stamp.attemptId]);
    expect(await down(made, living)).toMatchObject({ gone: true });
    expect(await host.docker('ps', '-aq')).toBe('');
    await close();
  });

  it('compose: a stack is not reported gone while its rootless engine is down', async () => {
    await host.startRootless();
    const made = extension({ engine: 'rootless' });
    const living = await make(made, stack());
    await host.stopRootless();
    await expect(down(made, living)).rejects.toMatchObject({ code: 'SBX_HOST_UNREACHABLE' });
    await expect(owned(made, host.host)).rejects.toMatchObject({ code: 'SBX_HOST_UNREACHABLE' });
    await host.startRootless();
    expect(await down(made, living)).toMatchObject({ gone: true, remaining: [] });
    await close();
  });
});
