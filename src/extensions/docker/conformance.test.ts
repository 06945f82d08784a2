/** The suite on real engines, over every way to one and every channel into a container. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { startDockerd, whyNoDockerd } from '../../../tests/support/dockerd.ts';
import { startPodman, whyNoPodman } from '../../../tests/support/podman.ts';
import { startTlsEngine } from '../../../tests/support/tls-engine.ts';
import { conformanceSuite, describeConformance } from '../../testing/conformance.ts';
import { sshServerMissing, startSshServer } from '../../testing/ssh-server.ts';
import type { DockerOptions } from './config.ts';
import { createDockerExtension } from './index.ts';

spawnSync('sh', [join(import.meta.dirname, '..', '..', '..', 'scripts', 'build-agent.sh')], {
  stdio: 'inherit',
});

interface Engine {
  readonly socket: string;
  readonly directory: string;
  readonly image: string;
}

interface Way {
  readonly name: string;
  readonly whyNot: string | null;
  /** What of the suite is run; default: everything. */
  readonly claims?: readonly string[];
  start(): Promise<{ engine: Engine; options: Partial<DockerOptions>; close(): Promise<void> }>;
}

const noEngine = whyNoDockerd();

const ways: readonly Way[] = [
  {
    name: 'a socket here, called from inside',
    whyNot: noEngine,
    async start() {
      const engine = await startDockerd();
      return { engine, options: { channel: 'call' }, close: () => engine.close() };
    },
  },
  {
    name: 'without the agent',
    whyNot: noEngine,
    async start() {
      const engine = await startDockerd();
      return { engine, options: { channel: 'exec' }, close: () => engine.close() };
    },
  },
  {
    name: 'TLS, by a relay',
    whyNot: noEngine,
    async start() {
      const { engine, url, tls } = await startTlsEngine();
      return { engine, options: { url, tls }, close: () => engine.close() };
    },
  },
  {
    name: 'ssh, by a relay',
    whyNot: noEngine ?? sshServerMissing(),
    claims: ['contract', 'lifecycle', 'exec', 'files', 'ports', 'snapshot', 'credentials'],
    async start() {
      const [engine, sshd] = await Promise.all([startDockerd(), startSshServer()]);
      const { user, address, port, hostKey, identityFile } = sshd;
      return {
        engine,
        options: {
          url: `ssh://${user}@${address}:${port}${engine.socket}`,
          ssh: { hostKeys: [hostKey], identityFile },
        },
        close: async () => {
          await sshd.stop();
          await engine.close();
        },
      };
    },
  },
  {
    name: 'Podman',
    whyNot: whyNoPodman(),
    claims: [
      'contract',
      'lifecycle',
      'exec',
      'pty',
      'files',
      'pause',
      'snapshot',
      'fork',
      'credentials',
      'resources',
    ],
    async start() {
      const engine = await startPodman();
      return { engine, options: {}, close: () => engine.close() };
    },
  },
];

for (const { name, whyNot, claims, start } of ways) {
  if (whyNot !== null) {
    describe(`ext.docker (${name})`, () => {
      it.skip(`cannot be used here: ${whyNot}`, () => {});
    });
    continue;
  }
  const left = conformanceSuite().filter(({ claim }) => claims !== undefined && !claims.includes(claim));
  describeConformance({ describe, it, beforeAll, afterAll }, `ext.docker (${name})`, {
    async create() {
      const { engine, options, close } = await start();
      const extension = await createDockerExtension({
        url: `unix://${engine.socket}`,
        tls: null,
        directory: join(engine.directory, 'doors'),
        defaultImage: engine.image,
        images: { allow: ['*'], pull: 'never', requireDigest: false, logins: {} },
        network: null,
        ...options,
      });
      return { extension, cleanup: close };
    },
    graceMs: 20_000,
    skip: Object.fromEntries(left.map((test) => [test.name, 'It is run over another way.'])),
  });
}
