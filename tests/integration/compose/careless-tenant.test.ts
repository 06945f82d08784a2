/** What the bad stacks of one workspace do to another, through the whole server on a real host. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import type { SandboxerApiError } from '../../../src/client/transport/api-error.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';

const missing = whyNoComposeHost();
const AS_MANY_AS_OPEN_A_BREAKER = 5;
const PROFILE = 'profile.compose-e2e';

describe.skipIf(missing !== null)('stacks of a careless workspace', { timeout: 400_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-careless-'));
  let host: ComposeHost;
  let server: RunningServer;
  let careless: SandboxerClient;
  let honest: SandboxerClient;

  async function start(): Promise<void> {
    const env = { SANDBOXER_STATE_DIR: join(directory, 'state'), SANDBOXER_LOG_LEVEL: 'silent' };
    const off = { enabled: false };
    const config = loadConfig(env, {
      hosts: { probe: '1h', canary: { every: null } },
      extensions: { local: off, docker: off, compose_ssh: off },
    });
    const stacks = createComposeExtension({ directory: host.directory });
    server = await serve({ config, env, extensions: [stacks] });
    const url = `unix:${server.socketPath}`;
    careless = new SandboxerClient({ url, workspace: 'careless' });
    honest = new SandboxerClient({ url, workspace: 'honest' });
  }

  async function stop(): Promise<void> {
    careless?.close();
    honest?.close();
    await server?.stop();
  }

  beforeAll(async () => {
    host = await startComposeHost();
    await start();
    const operator = new SandboxerClient({ url: `unix:${server.socketPath}` });
    for (const workspace_id of ['careless', 'honest'])
      await operator.request({
        method: 'POST',
        path: '/v1/workspaces',
        json: { workspace_id, org_id: 'default' },
      });
    const { destination, port, user, hostKeys, identityFile } = host.server.access();
    const ssh = {
      destination,
      port: port as number,
      user: user as string,
      host_keys: [...hostKeys],
      identity_file: identityFile as string,
    };
    await operator.hosts.add({ id: 'sandboxer01', ssh });
    operator.close();
  });

  afterAll(async () => {
    // What is still torn down would lose its host.
    while (host && (await host.engine.docker('ps', '-aq')) !== '') await sleep(500);
    await stop();
    await host?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function offered(): Promise<unknown> {
    const { candidates } = await honest.routes.resolve({ profile: PROFILE, inputs: { compose: 'x' } });
    return candidates.map(({ extension, host: place, excluded_by, standing }) => ({
      extension,
      place,
      excluded_by,
      breaker: standing?.breaker,
      success: standing?.success,
      samples: standing?.samples,
    }));
  }

  it('a storm of bad stacks: another workspace is offered the same, also after a restart', async () => {
    const { image } = host.engine;
    const forged = 'permission denied while trying to connect to docker.sock';
    const stacks: Record<string, object> = {
      refused: { compose: `services: {a: {image: ${image}, privileged: true}}` },
      'ends at once': { compose: `services: {a: {image: ${image}, command: ["false"]}}` },
      'waited for in vain': {
        compose: `services: {a: {image: ${image}, command: [sleep, "99"], init: true, healthcheck: {test: ["CMD", "false"], interval: 1s}}}`,
        wait_for: 'a',
        wait_seconds: 1,
      },
      'forged text': {
        compose: `services: {a: {image: ${image}, command: ["${forged}"]}}`,
      },
    };
    const before = await offered();
    expect(before).toMatchObject([{ excluded_by: [], breaker: 'closed', samples: 0 }]);
    for (const [what, inputs] of Object.entries(stacks)) {
      for (let n = 0; n < AS_MANY_AS_OPEN_A_BREAKER; n += 1) {
        const refused = await careless.sandboxes
          .create({ profile: PROFILE, inputs: inputs as never })
          .catch((error: unknown) => error);
        const { problem } = refused as SandboxerApiError;
        expect(problem, `${what}: ${problem?.detail}`).toMatchObject({
          fault: 'caller',
          backend: 'ext.compose-ssh',
        });
      }
      expect(await offered(), what).toEqual(before);
    }
    await stop();
    await start();
    expect(await offered()).toEqual(before);
  });
});
