/** The plan of a stack, over HTTP and by the command that the guide shows. No host and no engine is there. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { SandboxerClient } from '../../../src/client/sandboxer-client.ts';
import { archiveOf } from '../../../src/testing/conformance/tar-archive.ts';
import { TestServer } from '../../support/test-server.ts';

const CLI = join(import.meta.dirname, '../../../src/cli/main.ts');

describe('compose: the plan of a stack', { timeout: 120_000 }, () => {
  const tree = mkdtempSync(join(tmpdir(), 'sbx-plan-'));
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => {
    await server.close();
    rmSync(tree, { recursive: true });
  });

  const plan = (compose: string, more: object = {}) =>
    server.expect(200, 'POST', '/v1/stacks/plan', {
      json: { profile: 'profile.compose-e2e', inputs: { compose }, ...more },
    });

  /** Runs a command as the guide writes it. */
  async function command(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
    const [, ...words] = line.split(' ');
    const args = [CLI, ...words, '--url', `unix:${join(server.dir, 'sandboxer.sock')}`];
    const env = { PATH: process.env.PATH, HOME: tree, SANDBOXER_STATE_DIR: server.dir };
    return await promisify(execFile)(process.execPath, args, { env, cwd: tree }).then(
      (said) => ({ code: 0, ...said }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
  }

  it('plan: shows the emitted file and what is left out', async () => {
    const found = await plan(
      'services: {web: {image: nginx, labels: {traefik.enable: "true"}, volumes: ["cache:/cache"]}}\nvolumes: {cache: {}}',
    );
    expect(found).toMatchObject({ accepted: true, services: ['web'], findings: [] });
    expect(found.notes).toContain('web: left out: labels.traefik.enable.');
    const { web } = parse(found.file).services;
    expect(web).toMatchObject({ image: 'nginx:latest', security_opt: ['no-new-privileges:true'] });
    expect(web.labels).not.toHaveProperty('traefik.enable');
  });

  it('plan: shows every finding of a refused stack, and no file', async () => {
    const found = await plan('services: {web: {image: nginx, privileged: true, pid: host}}');
    expect(found).toMatchObject({ accepted: false, file: null });
    expect(found.findings.map(({ field }: { field: string }) => field)).toEqual(['privileged', 'pid']);
    for (const { remedy } of found.findings) expect(remedy).not.toBe('');
  });

  it('plan: a bundle in the repository is its compose file, or the directory of one; any other is refused', async () => {
    const body = archiveOf([
      { name: 'deploy/compose.yml', content: 'services: {fromdeploy: {image: a}}' },
      { name: 'compose.yml', content: 'services: {fromtop: {image: a}}' },
      { name: 'empty/readme', content: '' },
    ]);
    const client = new SandboxerClient({ url: `unix:${join(server.dir, 'sandboxer.sock')}` });
    const { upload_id } = await client.uploads.create(body);
    client.close();
    const withBundle = (place: object) => plan('', { inputs: { repo_ref: `upload:${upload_id}`, ...place } });
    expect((await withBundle({})).services).toEqual(['fromtop']);
    for (const place of ['deploy', 'deploy/compose.yml', './deploy/'])
      expect((await withBundle({ compose_bundle_ref: place })).services).toEqual(['fromdeploy']);
    for (const [name, place] of [
      ['compose_bundle_ref', 'bundle-v3'],
      ['compose_bundle', 'empty'],
      ['compose_bundle_ref', 'deploy/../..'],
    ] as const) {
      const found = await server.call('POST', '/v1/stacks/plan', {
        json: { profile: 'profile.compose-e2e', inputs: { repo_ref: `upload:${upload_id}`, [name]: place } },
      });
      const field = found.json.field ?? found.json.findings[0].field;
      expect([place, field, found.json.accepted ?? false]).toEqual([place, `inputs.${name}`, false]);
    }
  });

  it('plan: the command prints the emitted file, or the plan as JSON, or why the stack is refused', async () => {
    mkdirSync(join(tree, 'conf'));
    writeFileSync(join(tree, 'conf/app.conf'), 'x');
    writeFileSync(
      join(tree, 'compose.yaml'),
      'services:\n  web: {image: nginx, configs: [app]}\n  tools: {image: box, profiles: [dev]}\nconfigs: {app: {file: ./conf/app.conf}}\n',
    );
    const shown = await command('sandboxer compose plan .');
    const asJson = await command('sandboxer compose plan . --input profiles=dev --json');
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.stdout).toContain('"source": "/STACK/grants/0"');
    expect(JSON.parse(asJson.stdout)).toMatchObject({ accepted: true, services: ['web', 'tools'] });
    writeFileSync(join(tree, 'compose.yaml'), 'services: {web: {image: nginx, devices: [/dev/kmsg]}}');
    const refused = await command('sandboxer compose plan .');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('services.web.devices');
  });
});
