/** The suite on a real engine that is reached in one of several ways. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { DockerOptions } from '../../src/extensions/docker/containers/options.ts';
import { createDockerExtension } from '../../src/extensions/docker/create.ts';
import { conformanceSuite, describeConformance } from '../../src/testing/conformance.ts';

interface Engine {
  readonly socket: string;
  readonly directory: string;
  readonly image: string;
}

export interface Way {
  readonly name: string;
  readonly whyNot: string | null;
  /** What of the suite is run; default: everything. */
  readonly claims?: readonly string[];
  start(): Promise<{ engine: Engine; options: Partial<DockerOptions>; close(): Promise<void> }>;
}

export function describeDocker({ name, whyNot, claims, start }: Way): void {
  if (whyNot !== null) {
    describe(`ext.docker (${name})`, () => {
      it.skip(`cannot be used here: ${whyNot}`, () => {});
    });
    return;
  }
  spawnSync('sh', [join(import.meta.dirname, '../../scripts/build-agent.sh')], { stdio: 'inherit' });
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
    skip: Object.fromEntries(left.map((test) => [test.name, 'It is run over another way.'])),
  });
}
