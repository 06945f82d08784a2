/** The request of an end-to-end validator, through the whole server: a registered host, an uploaded repository. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/index.ts';
import { loadConfig } from '../../../src/main/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';

const missing = whyNoComposeHost();

describe.skipIf(missing !== null)('profile.compose-e2e on a registered host', { timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-stacks-'));
  const repository = join(directory, 'repository');
  let host: ComposeHost;
  let server: RunningServer;
  let client: SandboxerClient;

  beforeAll(async () => {
    host = await startComposeHost();
    mkdirSync(join(repository, 'www'), { recursive: true });
    writeFileSync(join(repository, 'www', 'index.html'), 'served from the repository\n');
    const compose = `services:
  web:
    image: ${host.engine.image}
    command: [httpd, -f, -p, "80", -h, /www]
    ports: ["8080:80"]
    volumes: ["./www:/www:ro"]
`;
    writeFileSync(join(repository, 'docker-compose.yml'), compose);
    const env = { SANDBOXER_STATE_DIR: join(directory, 'state'), SANDBOXER_LOG_LEVEL: 'silent' };
    const config = loadConfig(env, {
      extensions: { local: { enabled: false }, docker: { enabled: false }, compose_ssh: { enabled: false } },
    });
    const stacks = createComposeExtension({ directory: host.directory });
    server = await serve({ config, env, extensions: [stacks] });
    client = new SandboxerClient({ url: `unix:${server.socketPath}` });
    const { destination, port, user, hostKeys, identityFile } = host.server.access();
    await client.hosts.add({
      id: 'sandboxer01',
      ssh: {
        destination,
        port: port as number,
        user: user as string,
        host_keys: [...hostKeys],
        identity_file: identityFile as string,
      },
    });
  }, 180_000);

  afterAll(async () => {
    client?.close();
    await server?.stop();
    await host?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  it('establishes the stack, hands over where it is, and leaves nothing behind', async () => {
    const upload = await client.uploads.path(repository);
    const request = {
      profile: 'profile.compose-e2e',
      inputs: { repo: `upload:${upload.upload_id}` },
      ttl: '2h',
      consumer: { actor: 'atm', harness: 'wise-validator', run_id: 'r1' },
    } as const;
    const sandbox = await client.sandboxes.create(request, { wait: 'ready' });
    expect(sandbox).toMatchObject({ state: 'ready', extension: 'ext.compose-ssh', host: 'sandboxer01' });
    expect(sandbox.reachability?.services).toMatchObject([{ name: 'web', state: 'running' }]);
    const id = sandbox.sandbox_id;
    const { exit, stdout } = await client
      .exec(id, { command: ['wget', '-qO-', 'http://127.0.0.1:80/'] })
      .result();
    expect(exit.code).toBe(0);
    expect(stdout.toString()).toBe('served from the repository\n');
    const { plan } = await client.sandboxes.route(id);
    expect(plan.candidates[0]).toMatchObject({ host: 'sandboxer01', rank: 0 });
    expect(await client.sandboxes.destroy(id, { wait: 'destroyed' })).toMatchObject({ state: 'destroyed' });
    const telemetry = await client.hosts.telemetry('sandboxer01');
    expect(telemetry.containers.ours).toBe(0);
  });
});
