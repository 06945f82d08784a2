import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxerError } from '../../../src/contract/errors/errors.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { context, errorOf, establish, output, owned, repo, specFor } from './compose-world.ts';

const missing = whyNoComposeHost();
const ALLOW = { network: { default: 'allow' as const, egress: [] } };

describe.skipIf(missing !== null)('compose stacks on a host', { timeout: 300_000 }, () => {
  let host: ComposeHost;
  let extension: ReturnType<typeof createComposeExtension>;
  let image: string;
  const make = (parts: Parameters<typeof establish>[2]) => establish(extension, host.host, parts);
  const teardown = async ({ spec }: { spec: Awaited<ReturnType<typeof make>>['spec'] }) => {
    const report = await extension.teardown({ stamp: spec.stamp, handle: null }, context(host.host));
    expect(report).toMatchObject({ gone: true, remaining: [] });
    return report;
  };
  const failure = async (parts: Parameters<typeof establish>[2]): Promise<SandboxerError> => {
    const spec = specFor(extension, parts);
    const work = extension
      .provision(spec, context(host.host))
      .then((handle) => extension.waitReady(handle, context(host.host)));
    const error = await errorOf(work);
    await teardown({ spec });
    return error;
  };

  beforeAll(async () => {
    host = await startComposeHost();
    image = host.engine.image;
    extension = createComposeExtension({ directory: host.directory });
  });

  afterAll(async () => {
    await extension?.close();
    await host?.close();
  });

  const three = () => `
services:
  web:
    image: ${image}
    command: [httpd, -f, -p, "80", -h, /www]
    ports: ["8080:80"]
    volumes: ["./www:/www:ro", "logs:/logs"]
    environment: {GREETING: "\${GREETING:-hi}"}
    depends_on: [db]
  db:
    image: ${image}
    command: [sleep, "10000"]
    init: true
    volumes: ["data:/data", ".:/src"]
    healthcheck: {test: ["CMD", "true"], interval: 1s}
  job: {image: ${image}, command: [sh, -c, "exit 0"]}
volumes: {data: {}, logs: {}}
`;
  const files = () => ({
    'compose.yaml': three(),
    '.env': 'GREETING=hello $USER\n',
    'www/index.html': 'it works\n',
    'www/sub/deep': 'x',
  });

  it('a three-service stack runs without a network, in at most six round trips, and leaves nothing', async () => {
    // Warm: the connection, the agent and the facts of the host are there.
    await teardown(
      await make({
        recipe: { inputs: { compose: `services: {a: {image: ${image}, command: [sleep, "99"]}}` } },
      }),
    );
    const shim = mkdtempSync(join(tmpdir(), 'ssh-shim-'));
    const log = join(shim, 'log');
    const before = process.env.PATH ?? '';
    writeFileSync(join(shim, 'ssh'), `#!/bin/sh\necho run >>${log}\nexec /usr/bin/ssh "$@"\n`);
    chmodSync(join(shim, 'ssh'), 0o755);
    process.env.PATH = `${shim}${delimiter}${before}`;
    const made = await make({
      inputs: repo(files()),
      recipe: { reachability: { tunnel: 'ops-bridge', identity: null } },
    });
    process.env.PATH = before;
    expect(readFileSync(log, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(6);
    rmSync(shim, { recursive: true });

    const { reachability, isolation, notes } = made.ready;
    expect(isolation).toBe('container');
    expect(reachability.ssh).toMatchObject({ host: host.server.address, port: host.server.port });
    // The profile names a kind of tunnel; this host has none.
    expect(reachability.tunnel_ref).toBeNull();
    expect(reachability.services.map(({ name }) => name).sort()).toEqual(['db', 'job', 'web']);
    expect(notes).toContain('web: port 80 is at a free port of the host instead of 8080.');

    const [endpoint] = reachability.endpoints;
    expect(endpoint).toMatchObject({ name: 'web:80', port: 80 });
    const hostPort = new URL(endpoint?.url ?? '').port;
    expect(await host.engine.enter('busybox', 'wget', '-qO-', `http://127.0.0.1:${hostPort}/`)).toBe(
      'it works\n',
    );
    expect(await output(made.session, 'wget -qO- http://127.0.0.1/; echo "$GREETING"')).toBe(
      'it works\nhello',
    );
    expect(await output(made.session, 'ping -c1 -W1 db >/dev/null && echo there')).toBe('there');
    expect(
      await output(
        made.session,
        'nslookup example.org 2>&1 | grep -c Address: ; wget -T 2 -qO- http://192.0.2.7/ >/dev/null 2>&1 || echo no',
      ),
    ).toBe('0\nno');
    expect(await output(made.session, 'touch /www/x 2>&1')).toMatch(/Read-only/i);

    const connection = await made.session.dial?.(80);
    await connection?.write(Buffer.from('GET / HTTP/1.0\r\n\r\n'));
    let answer = '';
    for await (const chunk of connection?.readable ?? []) answer += Buffer.from(chunk).toString();
    expect(answer).toContain('it works');

    await made.session.close();
    const report = await teardown(made);
    expect(report.removed.filter((what) => what.startsWith('container '))).toHaveLength(4);
    expect(await host.engine.docker('ps', '-aq')).toBe('');
    expect(await host.engine.docker('volume', 'ls', '-q')).toBe('');
    expect(await host.engine.docker('network', 'ls', '--filter', 'type=custom', '-q')).toBe('');
    expect(await host.engine.enter('ls', join(host.directory, 'stacks'))).toBe('');
  });

  it('an open stack is published by the engine, on a free port even if the requested one is taken', async () => {
    const one = await make({ inputs: repo(files()), recipe: ALLOW });
    const two = await make({ inputs: repo(files()), recipe: ALLOW });
    const ports = [one, two].map(({ ready }) => new URL(ready.reachability.endpoints[0]?.url ?? '').port);
    expect(new Set(ports).size).toBe(2);
    for (const port of ports)
      expect(await host.engine.enter('busybox', 'wget', '-qO-', `http://127.0.0.1:${port}/`)).toBe(
        'it works\n',
      );
    await teardown(one);
    expect(await output(two.session, 'echo alive')).toBe('alive');
    await teardown(two);
  });

  it('a stack reports health as data, and waits for it only on request', async () => {
    const sick = `services: {web: {image: ${image}, command: [sleep, "999"], init: true, healthcheck: {test: ["CMD", "false"], interval: 1s, retries: 2}}}`;
    const made = await make({ recipe: { inputs: { compose: sick } } });
    expect(made.ready.reachability.services).toEqual([
      { name: 'web', state: 'running', health: expect.stringMatching(/starting|unhealthy/) },
    ]);
    await teardown(made);
    const error = await failure({
      recipe: { inputs: { compose: sick, wait_for: ['web'], wait_seconds: 4 } },
    });
    expect(error.code).toBe('SBX_COMPOSE_INVALID');
    expect(error.detail).toContain('web');
    const well = sick.replace('"false"', '"true"');
    const waited = await make({ recipe: { inputs: { compose: well, wait_for: 'web' } } });
    expect(waited.ready.reachability.services[0]?.health).toBe('healthy');
    await teardown(waited);
  });

  // Whatever a stack does wrong is its own fault, and says nothing of the host to other workspaces.
  it.each([
    [
      'an image that is not there',
      (name: string) => `services: {web: {image: "localhost:1/${name}"}}`,
      'SBX_COMPOSE_INVALID',
    ],
    [
      'a service that ends at once',
      () => `services: {web: {image: ${image}, command: ["false"]}}`,
      'SBX_COMPOSE_INVALID',
    ],
    [
      'a service that ends again and again',
      () => `services: {web: {image: ${image}, command: ["false"], restart: always}}`,
      'SBX_COMPOSE_INVALID',
    ],
    [
      'a dependency that never gets healthy',
      () =>
        `services: {web: {image: ${image}, depends_on: {db: {condition: service_healthy}}}, db: {image: ${image}, command: [sleep, "99"], init: true, healthcheck: {test: ["CMD", "false"], interval: 1s, retries: 1}}}`,
      'SBX_COMPOSE_INVALID',
    ],
    [
      'a program that is not there',
      () => `services: {web: {image: ${image}, command: [no-such-program]}}`,
      'SBX_COMPOSE_INVALID',
    ],
    [
      'a stack that reaches out',
      () => `services: {web: {image: ${image}, privileged: true}}`,
      'SBX_COMPOSE_REFUSED',
    ],
  ] as const)('%s is a typed error and leaves nothing', async (_what, compose, code) => {
    const error = await failure({ recipe: { inputs: { compose: compose('nothing') } } });
    expect(error).toMatchObject({ code });
    expect(await owned(extension, host.host)).toEqual([]);
    expect(await host.engine.docker('ps', '-aq')).toBe('');
  });

  it('a stack builds from the tree under a name of its own, without a network', async () => {
    const made = await make({
      inputs: repo({
        'compose.yaml':
          'services: {app: {build: ., image: "precious:1", command: [sleep, "999"], init: true}}',
        Dockerfile: `FROM ${image}\nCOPY hello /hello\nRUN ip route | grep -q default && exit 1 || true\n`,
        hello: 'built\n',
      }),
    });
    expect(await output(made.session, 'cat /hello')).toBe('built');
    expect(await host.engine.docker('image', 'ls', '-q', 'precious')).toBe('');
    await teardown(made);
    expect(await host.engine.docker('image', 'ls', '-q', '--filter', 'reference=sandboxer-sbx*')).toBe('');
  });

  it('stacks of two control planes stay apart, and foreign objects are left alone', async () => {
    await host.engine.docker(
      'run',
      '-d',
      '--name',
      'foreign',
      '--label',
      'com.docker.compose.project=sbxforeign',
      image,
      'sleep',
      '9999',
    );
    const other = createComposeExtension({ directory: host.directory });
    const compose = `services: {web: {image: ${image}, command: [sleep, "999"], init: true, container_name: same, volumes: ["v:/v"]}}\nvolumes: {v: {name: same}}`;
    const mine = await make({ recipe: { inputs: { compose } }, owner: 'one' });
    const theirs = await establish(other, host.host, { recipe: { inputs: { compose } }, owner: 'two' });
    await output(mine.session, 'echo mine >/v/who');
    expect(await output(theirs.session, 'cat /v/who 2>&1')).toMatch(/No such file/);
    expect(await owned(extension, host.host, 'one')).toEqual([mine.spec.stamp.attemptId]);
    expect(await owned(other, host.host, 'two')).toEqual([theirs.spec.stamp.attemptId]);
    // The same stamp under another name is somebody else's.
    await extension.teardown(
      { stamp: { ...theirs.spec.stamp, owner: 'one' }, handle: null },
      context(host.host),
    );
    expect(await output(theirs.session, 'echo alive')).toBe('alive');
    await teardown(mine);
    await other.teardown({ stamp: theirs.spec.stamp, handle: null }, context(host.host));
    await other.close();
    expect(await host.engine.docker('ps', '-a', '--format', '{{.Names}}')).toBe('foreign');
    await host.engine.docker('rm', '-f', 'foreign');
  });

  it('a stack keeps volumes, tree and services, and no secret; a copy has its own', async () => {
    const compose = `services:
  db: {image: ${image}, init: true, command: [sleep, "999"], volumes: ["data:/data", "/anonymous"]}
  web: {image: ${image}, init: true, command: [sleep, "999"], environment: [TOKEN], volumes: ["data:/shared", "./src:/src"]}
volumes: {data: {}}`;
    const secrets = [{ name: 'TOKEN', delivery: 'env' as const, value: 'never-in-a-snapshot' }];
    const source = await make({
      secrets,
      inputs: repo({ 'compose.yaml': compose, 'src/file': 'first\n' }),
    });
    const write = (text: string) =>
      `echo ${text} >/data/row; echo ${text} >/anonymous/row; echo ${text} >/only-in-db; chown 1000:1000 /data/row`;
    const read = 'cat /data/row /anonymous/row /only-in-db; stat -c %u /data/row';
    const web = (session: typeof source.session) => session.services?.session('web') ?? session;
    await output(source.session, write('one'));
    await output(web(source.session), 'echo changed >/src/file');
    const taking = { snapshotId: `snap${Date.now()}`, name: null, owner: 'tests' };
    const taken = await extension.snapshot(source.handle, taking, context(host.host));
    expect(Object.keys((taken.ref as { images: object }).images).sort()).toEqual(['db', 'web']);
    expect(taken.sizeBytes).toBeGreaterThan(0);
    expect(
      await host.engine.docker(
        'image',
        'inspect',
        ...(
          await host.engine.docker('image', 'ls', '-q', '--filter', 'reference=sandboxer-snapshot-*')
        ).split('\n'),
      ),
    ).not.toContain('never-in-a-snapshot');
    await output(source.session, write('two'));
    const parts = { secrets: [{ ...secrets[0], value: 'given-anew' }] as typeof secrets, inputs: repo({}) };
    const recipe = source.spec.recipe;
    const spec = specFor(extension, { ...parts, recipe });
    const handle = await extension.restore(spec, taken.ref, context(host.host));
    await extension.waitReady(handle, context(host.host));
    const restored = await extension.connect(handle, context(host.host));
    expect(await output(restored, read)).toBe('one\none\none\n1000');
    expect(await output(web(restored), 'cat /src/file /shared/row; echo "$TOKEN"')).toBe(
      'changed\none\ngiven-anew',
    );
    expect(await output(source.session, 'cat /data/row')).toBe('two');
    await restored.close();
    await extension.deleteSnapshot(taken.ref, taking, context(host.host));
    await teardown({ spec });
    await teardown(source);
    expect(await host.engine.docker('image', 'ls', '-q', '--filter', 'reference=sandboxer-s*-*')).toBe('');
    expect(await host.engine.enter('ls', join(host.directory, 'snapshots'))).toBe('');
    expect(await host.engine.docker('volume', 'ls', '-q')).toBe('');
  });

  it('a container cannot lead a bind of another out of the tree by a link', async () => {
    const made = await make({
      inputs: repo({
        'compose.yaml': `services:
  evil: {image: ${image}, init: true, command: [sh, -c, "mv /src/shared /src/away; ln -sfn / /src/shared; sleep 9999"], volumes: [".:/src"]}
  victim: {image: ${image}, init: true, command: [sleep, "9999"], volumes: ["./shared:/shared"], depends_on: [evil]}`,
        'shared/file': 'kept\n',
      }),
      recipe: { inputs: { service: 'victim' } },
    });
    expect(await output(made.session, 'ls /shared')).toBe('file');
    const id = await host.engine.docker('ps', '-q', '--filter', 'label=io.sandboxer.service=victim');
    await host.engine.docker('restart', '-t', '0', id);
    expect(await output(made.session, 'ls /shared')).toBe('file');
    await teardown(made);
  });

  it('a stack gets secrets by file and by environment, and they are on no disk', async () => {
    const value = `s3cret-${Date.now()}`;
    const made = await make({
      secrets: [
        { name: 'by_file', delivery: 'file', value },
        { name: 'BY_ENV', delivery: 'env', value: `${value}\nsecond` },
      ],
      inputs: repo({
        'compose.yaml': `services: {web: {image: ${image}, init: true, command: [sleep, "999"], user: "1000"}}`,
      }),
    });
    expect(await output(made.session, 'cat /run/secrets/by_file; echo; echo "$BY_ENV"')).toBe(
      `${value}\n${value}\nsecond`,
    );
    const found = await promisify(execFile)('grep', ['-rl', value, host.directory]).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    );
    expect(found.stdout).toBe('');
    await teardown(made);
    const inMemory = await host.engine.enter('sh', '-c', `grep -rl ${value} /dev/shm || true`);
    expect(inMemory).toBe('');
  });
});
