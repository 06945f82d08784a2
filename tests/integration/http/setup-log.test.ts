import { afterAll, beforeAll, expect, test } from 'vitest';
import { SetupLog } from '../../../src/contract/sandboxes/setup-log.ts';
import type { Fixture } from './fixture.ts';
import { LIVE_PROFILE } from './fixture.ts';
import { startLiveFixture } from './live-fixture.ts';

const VALUE = 'hunter2-and-more';

let f: Fixture;
beforeAll(async () => {
  f = await startLiveFixture({ env: { SANDBOXER_SECRET_TOKEN: VALUE } });
});
afterAll(() => f.close());

async function pushed(name: string, setup: object): Promise<string> {
  const id = `profile.stub-${name}`;
  const answer = await f.call('POST', '/v1/profiles', { json: { ...LIVE_PROFILE, id, setup } });
  expect(answer.status).toBe(201);
  return id;
}

async function setupOf(id: string) {
  const { status, json } = await f.call('GET', `/v1/sandboxes/${id}/setup`);
  expect(status).toBe(200);
  return SetupLog.parse(json).items;
}

test('setup output is kept, command by command, without the secrets that it saw', async () => {
  const run = ['echo one; echo "to stderr" >&2', 'echo "token: $TOKEN"', 'true'];
  const secret_refs = [{ name: 'TOKEN', provider: 'env', delivery: 'env' }];
  const id = await f.create(await pushed('set-up', { run, secret_refs }));
  const items = await setupOf(id);
  expect(items.map(({ command, output, exit_code }) => [command, output, exit_code])).toEqual([
    [run[0], expect.stringMatching(/^(one\nto stderr|to stderr\none)\n$/), 0],
    [run[1], 'token: [secret]\n', 0],
    ['true', '', 0],
  ]);
  expect(items[0]).toMatchObject({ generation: 1, attempt: 1, extension: 'ext.saas-stub', truncated: false });

  await f.call('POST', `/v1/sandboxes/${id}/recreate`);
  await f.call('GET', `/v1/sandboxes/${id}/wait`);
  expect((await setupOf(id)).map(({ generation }) => generation)).toEqual([1, 1, 1, 2, 2, 2]);
  await f.call('DELETE', `/v1/sandboxes/${id}`);
  expect(await setupOf(id)).toHaveLength(6);
});

test('setup output of a failed sandbox is kept, too, and its error shows no secret', async () => {
  const run = ['echo getting ready', 'echo "$TOKEN is wrong" >&2; exit 7', 'echo never'];
  const secret_refs = [{ name: 'TOKEN', provider: 'env', delivery: 'env' }];
  const profile = await pushed('breaks', { run, secret_refs });
  const answer = await f.call('POST', '/v1/sandboxes', { json: { profile, id: 'broken' } });
  expect(answer.status).toBe(422);
  expect(answer.json.detail).toContain('setup.run[1] ended with 7: [secret] is wrong');
  expect(answer.json.remedy).toContain('sandboxer logs --setup');
  const items = await setupOf('broken');
  expect(items.map(({ output, exit_code }) => [output, exit_code])).toEqual([
    ['getting ready\n', 0],
    ['[secret] is wrong\n', 7],
  ]);
  expect((await f.call('GET', '/v1/events?limit=500')).text).not.toContain(VALUE);
});

test('setup output is empty where the sandbox has no setup', async () => {
  expect(await setupOf(await f.create())).toEqual([]);
  expect((await f.call('GET', '/v1/sandboxes/nowhere/setup')).status).toBe(404);
});
