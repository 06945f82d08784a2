/** Ways out of a stack that was judged harmless, tried on a real engine. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { archiveOf, textEntry } from '../../../src/extensions/compose-ssh/stack/ship-tree.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import type { SpecParts } from './compose-world.ts';
import { context, output, repo, specFor } from './compose-world.ts';

const SECRET = 'a file of the host';
const SLEEP = 'init: true, command: [sleep, "9999"]';

describe.skipIf(whyNoComposeHost() !== null)('compose: ways out of a stack', { timeout: 300_000 }, () => {
  let host: ComposeHost;
  let extension: ReturnType<typeof createComposeExtension>;
  let image: string;
  let outside: string;
  let made: { spec: ReturnType<typeof specFor> }[] = [];

  const make = async (parts: SpecParts) => {
    const spec = specFor(extension, parts);
    made.push({ spec });
    const handle = await extension.provision(spec, context(host.host));
    await extension.waitReady(handle, context(host.host));
    return { spec, handle, session: await extension.connect(handle, context(host.host)) };
  };
  /** What a stack ends with: its error, or what its first service can be made to print. */
  const outcome = async (parts: SpecParts, script: string): Promise<string> => {
    const living = await make(parts).catch((reason: unknown) => reason as { code: string; detail: string });
    if ('code' in living) return `${living.code} ${living.detail}`;
    return `started: ${await output(living.session, script)}`;
  };
  const stack = (compose: string, files: Record<string, string> = {}) => ({
    inputs: repo({ 'compose.yaml': compose, ...files }),
  });
  const teardown = async () => {
    for (const { spec } of made)
      await extension.teardown({ stamp: spec.stamp, handle: null }, context(host.host));
    made = [];
  };

  beforeAll(async () => {
    host = await startComposeHost();
    image = host.engine.image;
    extension = createComposeExtension({ directory: host.directory });
    outside = join(host.engine.directory, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), `${SECRET}\n`);
  });

  afterAll(async () => {
    await teardown();
    await extension?.close();
    await host?.close();
  });

  it.each([
    ['bind and a directory', (path: string) => `{type: tmpfs, o: bind, device: ${path}}`],
    ['rbind and the root', () => '{type: tmpfs, o: rbind, device: /}'],
    ['bind among other options', (path: string) => `{type: tmpfs, o: "size=1m,bind", device: ${path}}`],
    ['bind and tmpfs as the device', () => '{type: tmpfs, o: bind, device: tmpfs}'],
    ['another file system', () => '{type: overlay, o: "lowerdir=/etc:/usr", device: tmpfs}'],
  ])('compose: a tmpfs volume with %s is refused', async (_what, options) => {
    const compose = `services: {a: {image: ${image}, ${SLEEP}, volumes: ["v:/v"]}}\nvolumes: {v: {driver_opts: ${options(outside)}}}`;
    expect(await outcome(stack(compose), `cat /v/secret /v${outside}/secret`)).toMatch(
      /^SBX_COMPOSE_REFUSED/,
    );
    await teardown();
  });

  it('compose: a tmpfs volume with a size is that tmpfs', async () => {
    const options = '{type: tmpfs, device: tmpfs, o: "size=2m,mode=1777,noexec"}';
    const compose = `services: {a: {image: ${image}, ${SLEEP}, volumes: ["v:/v"]}}\nvolumes: {v: {driver_opts: ${options}}}`;
    expect(await outcome(stack(compose), 'grep " /v " /proc/mounts')).toMatch(
      /tmpfs \/v tmpfs .*noexec.*size=2048k/,
    );
    await teardown();
  });

  it.each(['configs', 'secrets'])(
    'compose: a file of %s below a writable bind stays that file, also after a restart',
    async (kind) => {
      const compose = `services:
  b: {image: ${image}, ${SLEEP}, ${kind}: [{source: c, target: /taken}], depends_on: [a]}
  a: {image: ${image}, init: true, command: [sh, -c, "rm -f /data/app.conf; ln -s ${outside}/secret /data/app.conf; sleep 9999"], volumes: ["./data:/data"]}
${kind}: {c: {file: ./data/app.conf}}`;
      const parts = {
        ...stack(compose, { 'data/app.conf': 'its own\n' }),
        recipe: { inputs: { service: 'b' } },
      };
      const { session } = await make(parts);
      expect(await output(session, 'cat /taken')).toBe('its own');
      const id = await host.engine.docker('ps', '-q', '--filter', 'label=io.sandboxer.service=b');
      for (const _round of [1, 2]) {
        await host.engine.docker('restart', '-t', '0', id);
        expect(await host.engine.docker('exec', id, 'cat', '/taken')).toBe('its own');
      }
      await teardown();
    },
  );

  it('compose: a context below a writable bind is built from a place of its own', async () => {
    const compose = `services:
  a: {build: {context: ./app, dockerfile: ../docker/Dockerfile.app}, ${SLEEP}, volumes: [".:/src"]}`;
    const files = { 'app/hello': 'built\n', 'docker/Dockerfile.app': `FROM ${image}\nCOPY hello /hello\n` };
    const { session } = await make(stack(compose, files));
    expect(await output(session, 'cat /hello /src/app/hello')).toBe('built\nbuilt');
    const stacks = join(host.directory, 'stacks');
    const file = await host.engine.enter('sh', '-c', `cat ${stacks}/*/stack.yml`);
    expect(file).toMatch(/"context": "[^"]*\/builds\/0"/);
    expect(file).toMatch(/"dockerfile": "[^"]*\/grants\/1"/);
    await teardown();
  });

  it('compose: a line break in the source of a bind is refused', async () => {
    const source = './q\\ncopy\\t../../../outside\\ttree/out/loot\\ndirectory';
    const compose = `services: {a: {image: ${image}, ${SLEEP}, volumes: [".:/src", {type: bind, source: "${source}", target: /q}]}}`;
    expect(await outcome(stack(compose), 'cat /src/out/loot/secret')).toMatch(/^SBX_COMPOSE_INVALID/);
    await teardown();
  });

  it('compose: a line break in the name of a file that a link leads to is refused', async () => {
    const compose = `services: {a: {image: ${image}, ${SLEEP}, volumes: [".:/src", "./l:/q"]}}`;
    const name = 'q\ncopy\toutside\ttree';
    const inputs = {
      ...repo({}),
      open: async () =>
        archiveOf([
          textEntry('compose.yaml', compose),
          textEntry(name, 'x'),
          { ...textEntry('l', ''), kind: 'symlink', linkTarget: name },
        ]),
    };
    expect(await outcome({ inputs }, 'ls /src')).toMatch(/^SBX_COMPOSE_INVALID/);
    await teardown();
  });

  it('compose: a line break in a target, of a mount or of an image, captures no other container', async () => {
    await host.engine.docker(
      'run',
      '-d',
      '--name',
      'customers-db',
      image,
      'sh',
      '-c',
      `mkdir -p /srv/private; echo ${SECRET} >/srv/private/rows; sleep 9999`,
    );
    const target = '/etc\\nvolume\\tcustomers-db\\ta\\t1\\tstolen\\t/srv/private';
    const compose =
      `services: {a: {image: ${image}, ${SLEEP}, volumes: ["v:${target}"]}}\nvolumes: {v: {}}`.replace(
        `"v:${target}"`,
        `{type: volume, source: v, target: "${target}"}`,
      );
    const snapshotOf = async (parts: SpecParts) => {
      const { handle } = await make(parts);
      const taking = { snapshotId: `snap${Date.now()}`, name: null, owner: 'tests' };
      const { ref } = await extension.snapshot(handle, taking, context(host.host));
      const { directory } = ref as { directory: string };
      const kept = await host.engine.enter('sh', '-c', `cat "${directory}"/volumes/*.tar`);
      return { ref, kept, taking };
    };
    const first = await snapshotOf(stack(compose)).catch((reason: unknown) => reason);
    expect(first).toMatchObject({ code: 'SBX_COMPOSE_INVALID' });

    const [from, changed] = [join(outside, 'image.tar'), `VOLUME ["${target}", "/plain"]`];
    const id = await host.engine.docker('create', image);
    await host.engine.docker('export', '-o', from, id);
    await host.engine.docker('rm', id);
    await host.engine.docker('import', '--change', changed, from, 'with-odd-volume:1');
    const { kept, ref, taking } = await snapshotOf(
      stack(
        `services: {a: {image: "with-odd-volume:1", init: true, command: [sh, -c, "echo own >/plain/row; sleep 9999"]}}`,
      ),
    );
    expect(kept).toContain('own');
    expect(kept).not.toContain(SECRET);
    const again = specFor(extension, {});
    made.push({ spec: again });
    const handle = await extension.restore(again, ref, context(host.host));
    await extension.waitReady(handle, context(host.host));
    expect(await output(await extension.connect(handle, context(host.host)), 'cat /plain/row')).toBe('own');
    await extension.deleteSnapshot(ref, taking, context(host.host));
    await host.engine.docker('rm', '-f', 'customers-db');
    await teardown();
  });

  it.each(['../base.yml', '../stack.yml', 'a/../../stack.yml', 'x\ny'])(
    'compose: a config named %j with content is refused',
    async (name) => {
      const compose = `services: {a: {image: ${image}, ${SLEEP}, configs: [${JSON.stringify(name)}]}}\nconfigs: {${JSON.stringify(name)}: {content: "services: {}"}}`;
      expect(await outcome(stack(compose), 'true')).toMatch(/^SBX_COMPOSE_INVALID/);
      await teardown();
    },
  );

  it('compose: secrets named like variables of the host reach the service, and nothing on the host', async () => {
    const values = {
      DOCKER_HOST: 'tcp://192.0.2.1:1',
      LD_PRELOAD: '/nowhere.so',
      COMPOSE_FILE: '/etc/passwd',
      IFS: 'x',
    };
    const secrets = Object.entries(values).map(([name, value]) => ({
      name,
      delivery: 'env' as const,
      value,
    }));
    const names = Object.keys(values).join(', ');
    const compose = `services: {a: {image: ${image}, ${SLEEP}, environment: [${names}]}}`;
    const print = 'tr "\\0" "\\n" </proc/1/environ | sort';
    const said = await outcome({ ...stack(compose), secrets }, print);
    for (const [name, value] of Object.entries(values)) expect(said).toContain(`${name}=${value}`);
    expect(said).not.toContain('SBX_');
    await teardown();
  });

  it('compose: annotations are refused, and labels that programs of a host act on are not emitted', async () => {
    const annotated = `services: {a: {image: ${image}, ${SLEEP}, annotations: {run.oci.seccomp_bpf_data: ""}}}`;
    expect(await outcome(stack(annotated), 'true')).toMatch(/^SBX_COMPOSE_REFUSED/);
    const labels =
      '{traefik.enable: "true", ofelia.job-local.x.command: id, org.opencontainers.image.title: shop}';
    const { spec } = await make(stack(`services: {a: {image: ${image}, ${SLEEP}, labels: ${labels}}}`));
    const filter = `label=io.sandboxer.attempt-id=${spec.stamp.attemptId}`;
    const id = await host.engine.docker('ps', '-q', '--filter', filter);
    const found = Object.keys(
      JSON.parse(await host.engine.docker('inspect', '--format', '{{json .Config.Labels}}', id)),
    );
    expect(found).toContain('org.opencontainers.image.title');
    expect(found.filter((name) => /traefik|ofelia/.test(name))).toEqual([]);
    await teardown();
  });

  it('compose: the image of another stack is reached by no other spelling of its name, nor by its id', async () => {
    const built = {
      ...stack(`services: {a: {build: ., ${SLEEP}}}`, {
        Dockerfile: `FROM ${image}\nRUN echo ${SECRET} >/own\n`,
      }),
    };
    await make(built);
    const [line = ''] = (
      await host.engine.docker(
        'image',
        'ls',
        '--no-trunc',
        '--format',
        '{{.Repository}} {{.ID}}',
        '--filter',
        'reference=sandboxer-sbx*',
      )
    ).split('\n');
    const [name = '', id = ''] = line.split(' ');
    const short = id.slice('sha256:'.length);
    const spellings = [
      name,
      `${name}:latest`,
      `docker.io/library/${name}`,
      `index.docker.io/library/${name}`,
      `docker.io/${name}`,
      id,
      short,
      short.slice(0, 12),
      `sha256:${short.slice(0, 8)}`,
    ];
    for (const spelling of spellings)
      expect(
        await outcome(
          stack(`services: {a: {image: "${spelling}", pull_policy: never, ${SLEEP}}}`),
          'cat /own',
        ),
        spelling,
      ).toMatch(/^SBX_COMPOSE_INVALID/);
    const beginnings = [short.slice(0, 5), short, id, name];
    const dockerfiles = [
      ...beginnings.map((spelling) => `FROM ${spelling}\n`),
      ...beginnings.map((spelling) => `FROM ${image}\nCOPY --from=${spelling} /own /own\n`),
      `ARG BASE=${short.slice(0, 5)}\nFROM \\\n# a comment\n$BASE\n`,
    ];
    for (const text of dockerfiles)
      expect(
        await outcome(stack(`services: {a: {build: ., ${SLEEP}}}`, { Dockerfile: text }), 'cat /own'),
        text,
      ).toMatch(/^SBX_COMPOSE_REFUSED/);
    const base = await host.engine.docker('create', image);
    const trigger = `ONBUILD COPY --from=${short.slice(0, 5)} /own /own`;
    await host.engine.docker('commit', '--change', trigger, base, 'team/with-trigger:1');
    await host.engine.docker('rm', base);
    expect(
      await outcome(
        stack(`services: {a: {build: ., ${SLEEP}}}`, { Dockerfile: 'FROM team/with-trigger:1\n' }),
        'cat /own',
      ),
    ).toMatch(/^SBX_COMPOSE_REFUSED .*ONBUILD/);
    await teardown();
  });
});
