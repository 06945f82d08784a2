/** A refused stack tells everything that is wrong with it, wherever its refusal is read. No host is asked. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestServer, until } from '../../support/test-server.ts';

const CLI = join(import.meta.dirname, '../../../src/cli/main.ts');
/** A public key whose private key does not exist. */
const KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
const SERVICES = Array.from({ length: 12 }, (_, n) => `s${n}: {image: x, privileged: true, pid: host}`);
const REFUSED = `services: {${SERVICES.join(', ')}}`;
const FIELDS = SERVICES.flatMap((_, n) => [`services.s${n}.privileged`, `services.s${n}.pid`]);
const REQUEST = { profile: 'profile.compose-e2e', inputs: { compose: REFUSED } };

type Issues = { readonly field: string; readonly problem: string; readonly remedy: string }[];

function expectAll(issues: Issues): void {
  expect(issues.map(({ field }) => field).sort()).toEqual([...FIELDS].sort());
  for (const { problem, remedy } of issues) expect([problem, remedy]).not.toContain('');
}

describe('compose: the issues of a refused stack', { timeout: 120_000 }, () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
    const ssh = { destination: '127.0.0.1', port: 1, user: 'nobody', host_keys: [`ssh-ed25519 ${KEY}`] };
    await server.expect(200, 'PUT', '/v1/hosts/box', { json: { ssh } });
  });
  afterAll(() => server.close());

  async function command(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const args = [CLI, ...words, '--url', `unix:${join(server.dir, 'sandboxer.sock')}`];
    const env = { PATH: process.env.PATH, HOME: server.dir, SANDBOXER_STATE_DIR: server.dir };
    return await promisify(execFile)(process.execPath, args, { env }).then(
      (said) => ({ code: 0, ...said }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
  }

  it('a create that is waited for has all of them in the problem', async () => {
    const problem = await server.expect(422, 'POST', '/v1/sandboxes', { json: REQUEST });
    expect(problem).toMatchObject({ code: 'SBX_COMPOSE_REFUSED', field: 'services.s0.privileged' });
    expectAll(problem.issues);
  });

  it('a create that is not waited for has them in the sandbox, its events and its route', async () => {
    const json = { ...REQUEST, id: 'later' };
    await server.expect(202, 'POST', '/v1/sandboxes?wait=none', { json });
    const get = () => server.expect(200, 'GET', '/v1/sandboxes/later');
    await until('it failed', async () => (await get()).state === 'failed');
    const { failure } = await get();
    expect(failure).toMatchObject({ code: 'SBX_COMPOSE_REFUSED', field: 'services.s0.privileged' });
    expectAll(failure.issues);
    const { attempts } = await server.expect(200, 'GET', '/v1/sandboxes/later/route');
    expectAll(attempts[0].error.issues);
    const { items } = await server.expect(200, 'GET', '/v1/sandboxes/later/events');
    for (const type of ['sandbox.failed', 'sandbox.attempt_failed'])
      expectAll(items.find((event: { type: string }) => event.type === type).data.details.issues);
  });

  it('a stack that is invalid, too, has both kinds', async () => {
    const compose = 'services: {a: {image: x, privileged: true, nonsense: 1}}';
    const json = { ...REQUEST, inputs: { compose } };
    const { code, issues } = await server.expect(422, 'POST', '/v1/sandboxes', { json });
    expect(code).toBe('SBX_COMPOSE_INVALID');
    expect(issues.map(({ field }: { field: string }) => field).sort()).toEqual([
      'services.a.nonsense',
      'services.a.privileged',
    ]);
  });

  it('the command line prints each with its field and its remedy, and has them in --json', async () => {
    const create = ['create', '--profile', 'compose-e2e', '--input', `compose=${REFUSED}`];
    const said = await command(...create, '--id', 'typed');
    expect(said.code).toBe(4);
    for (const field of FIELDS) {
      expect(said.stderr).toContain(`${field}: It would`.replace(/pid: It would$/, 'pid: "host" is'));
    }
    expect(said.stderr.match(/Remove it/g)?.length).toBeGreaterThanOrEqual(FIELDS.length);
    const asJson = await command(...create, '--json');
    expectAll(JSON.parse(asJson.stdout).error.issues);
    for (const look of [
      ['get', 'typed'],
      ['route', 'explain', 'typed'],
    ]) {
      const { stdout } = await command(...look);
      for (const field of FIELDS) expect(stdout).toContain(field);
    }
  });
});
