/** The request of an end-to-end validator, through the whole server: a registered host, an uploaded repository. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';

const missing = whyNoComposeHost();
const CLI = join(import.meta.dirname, '../../../src/cli/main.ts');

/** Programs, files and logs of the service that is not the default one. */
async function eachService(client: SandboxerClient, id: string): Promise<void> {
  const service = 'db';
  const run = (command: string) => client.exec(id, { command, service }).result();
  expect((await run('hostname; echo in-db >/only-here')).exit.code).toBe(0);
  const files = client.files.ofService(service);
  expect(await files.readText(id, '/only-here')).toBe('in-db\n');
  await expect(client.files.stat(id, '/only-here')).rejects.toMatchObject({ code: 'SBX_PATH_NOT_FOUND' });
  await files.mkdir(id, '/tree');
  await files.write(id, '/tree/a', 'a');
  await files.move(id, '/tree/a', '/tree/b');
  expect((await files.list(id, '/tree')).entries.map(({ name }) => name)).toEqual(['b']);

  const { process_id } = await client.background(id, { command: 'echo on; sleep 300', service });
  expect(process_id).toMatch(/@db$/);
  expect((await client.processes.list(id, { service })).map((process) => process.process_id)).toContain(
    process_id,
  );
  expect((await client.processes.list(id)).map((process) => process.process_id)).not.toContain(process_id);
  for await (const chunk of client.processes.attach(id, process_id)) if (chunk.type === 'stdout') break;
  await client.processes.signal(id, process_id, 'SIGKILL');
  expect(await client.processes.attach(id, process_id).exit()).toMatchObject({ code: 137 });

  const log = await client.processes.logs(id, { service }).result();
  expect(log.stdout.toString()).toBe('listening\n');
  expect(log.stderr.toString()).toBe('complaint\n');
  const followed = client.processes.logs(id, { service, follow: true });
  for await (const chunk of followed) if (chunk.type === 'stdout') break;

  const unknown = { code: 'SBX_SERVICE_NOT_FOUND', status: 404 };
  await expect(client.exec(id, { command: 'true', service: 'cache' }).result()).rejects.toMatchObject({
    ...unknown,
    detail: 'There is no service "cache": there are web, db.',
  });
  await expect(client.files.ofService('cache').stat(id, '/')).rejects.toMatchObject(unknown);
  await expect(client.processes.logs(id, { service: 'cache' }).result()).rejects.toMatchObject(unknown);
}

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
  db:
    image: ${host.engine.image}
    command: [sh, -c, "echo listening; echo complaint >&2; exec sleep 9999"]
    init: true
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
  });

  afterAll(async () => {
    client?.close();
    await server?.stop();
    await host?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('a stack on a registered host is established, reports its place, and leaves nothing behind', async () => {
    const upload = await client.uploads.path(repository);
    const request = {
      profile: 'profile.compose-e2e',
      inputs: { repo: `upload:${upload.upload_id}` },
      ttl: '2h',
      consumer: { actor: 'atm', harness: 'wise-validator', run_id: 'r1' },
    } as const;
    const sandbox = await client.sandboxes.create(request, { wait: 'ready' });
    expect(sandbox).toMatchObject({ state: 'ready', extension: 'ext.compose-ssh', host: 'sandboxer01' });
    expect(sandbox.reachability?.services).toMatchObject([
      { name: 'db', state: 'running' },
      { name: 'web', state: 'running' },
    ]);
    const id = sandbox.sandbox_id;
    const { exit, stdout } = await client
      .exec(id, { command: ['wget', '-qO-', 'http://127.0.0.1:80/'] })
      .result();
    expect(exit.code).toBe(0);
    expect(stdout.toString()).toBe('served from the repository\n');
    await eachService(client, id);
    const before = (await client.hosts.telemetry('sandboxer01')).containers;
    expect(before).toMatchObject({ ours: 3, not_ours: 0 });
    const { plan } = await client.sandboxes.route(id);
    expect(plan.candidates[0]).toMatchObject({ host: 'sandboxer01', rank: 0 });
    expect(await client.sandboxes.destroy(id, { wait: 'destroyed' })).toMatchObject({ state: 'destroyed' });
    const telemetry = await client.hosts.telemetry('sandboxer01');
    expect(telemetry.containers.ours).toBe(0);
  });

  it('smoke --host tries stacks there, without any repository', async () => {
    const smoke = async (...words: string[]) => {
      const url = `unix:${server.socketPath}`;
      const args = [CLI, 'smoke', '--host', 'sandboxer01', '--json', '--url', url, ...words];
      const env = { PATH: process.env.PATH, HOME: directory, SANDBOXER_STATE_DIR: directory };
      const outcome = await promisify(execFile)(process.execPath, args, { env }).then(
        ({ stdout }) => ({ code: 0, stdout }),
        (error: { code: number; stdout: string }) => error,
      );
      return { code: outcome.code, items: JSON.parse(outcome.stdout).items };
    };
    const lived = {
      extension: 'ext.compose-ssh',
      ok: true,
      ready_ms: expect.any(Number),
      exec_ms: expect.any(Number),
      destroyed_ms: expect.any(Number),
      problem: null,
    };
    expect(await smoke('ext.compose-ssh')).toEqual({ code: 0, items: [expect.objectContaining(lived)] });
    expect((await client.hosts.telemetry('sandboxer01')).containers.ours).toBe(0);
  });
});
