import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';

const SANDBOXES = 1_000;
const PROVISION_MS = 4_000;

interface Sandbox {
  readonly state: string;
}

async function states(client: UnixClient): Promise<Sandbox[]> {
  const all: Sandbox[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const page: { items: Sandbox[]; next_cursor: string | null } = await client.expect(
      200,
      'GET',
      `/v1/sandboxes?limit=500${query}`,
    );
    all.push(...page.items);
    cursor = page.next_cursor;
  }
  return all;
}

const inFlight = ({ state }: Sandbox) => state === 'requested' || state === 'provisioning';

export const benchmark: Benchmark = {
  name: 'control.recover',
  description:
    '1,000 sandboxes being provisioned, kill -9, restart until all are settled (target ≤ 5 s, none lost, none orphaned)',
  async run(context) {
    const count = context.smoke ? 10 : SANDBOXES;
    const dir = temporaryDir();
    // Slow enough that all sandboxes are still being made when the server dies.
    const stub = await startStubServer({ createMs: PROVISION_MS });
    writeFileSync(join(dir, 'stub.key'), stub.key);
    writeFileSync(
      join(dir, 'config.yaml'),
      `extensions: { saas_stub: { default: { url: "${stub.url}", key_file: "${join(dir, 'stub.key')}" } } }\n`,
    );
    const env = { SANDBOXER_CONFIG: join(dir, 'config.yaml') };
    const serverFile = join(import.meta.dirname, 'control-server.ts');
    const samples: number[] = [];
    let interrupted = 0;
    let server = await startChild(serverFile, dir, env);
    const client = new UnixClient(server.socketPath, 32);
    try {
      await client.expect(200, 'POST', '/v1/credits/grants', { amount_micro_usd: 100_000_000_000 });
      const rounds = context.smoke ? 1 : 3;
      for (let round = 1; round <= rounds; round++) {
        await Promise.all(
          Array.from({ length: count }, () =>
            client.expect(202, 'POST', '/v1/sandboxes?wait=none', { profile: 'profile.stub-metered' }),
          ),
        );
        interrupted = (await states(client)).filter(inFlight).length;
        await server.kill();
        const startedAt = performance.now();
        server = await startChild(serverFile, dir, env);
        let all = await states(client);
        while (all.some(inFlight)) {
          await sleep(25);
          all = await states(client);
        }
        samples.push(performance.now() - startedAt);
        const ready = all.filter(({ state }) => state === 'ready').length;
        if (all.length !== count * round || ready !== count * round)
          throw new Error(`${ready} of ${all.length} are ready, ${count * round} were made`);
        const objects = Object.keys((await stub.objects()).objects).length;
        if (objects !== count * round)
          throw new Error(`the backend has ${objects} objects for ${count * round} sandboxes`);
      }
      samples.sort((a, b) => a - b);
      const details = { sandboxes: count, in_flight_at_kill: interrupted, provision_ms: PROVISION_MS };
      return [summarize({ name: 'control.recover', unit: 'ms', samples, details })];
    } finally {
      client.close();
      await server.kill();
      await stub.stop();
      removeDir(dir);
    }
  },
};
