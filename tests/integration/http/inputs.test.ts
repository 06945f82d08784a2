/** Inputs that no backend takes, for every profile that comes with sand-boxer. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestServer } from '../../support/test-server.ts';
import { MEMORY_PROFILE } from './fixture.ts';

const SHIPPED = readdirSync(join(import.meta.dirname, '../../../profiles')).map((name) => `profile.${name}`);

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

const ASKING = [
  ['a create', '/v1/sandboxes'],
  ['a create that is not waited for', '/v1/sandboxes?wait=none'],
  ['a route', '/v1/routes/resolve'],
  ['a quote', '/v1/quotes'],
] as const;

describe.each(SHIPPED)('%s', (profile) => {
  it.each(ASKING)('%s with an unknown input is refused by its field', async (_what, path) => {
    const json = { profile, inputs: { wait_fr: 'a' } };
    const problem = await server.expect(400, 'POST', path, { json });
    expect(problem).toMatchObject({ code: 'SBX_INVALID_REQUEST', field: 'inputs.wait_fr' });
    expect(problem.remedy).toContain('"wait_for"');
  });

  it.each(['elevated', 'warm'])('%s that is neither true nor false is refused by its field', async (name) => {
    const json = { profile, inputs: { [name]: 'perhaps' } };
    const problem = await server.expect(400, 'POST', '/v1/sandboxes', { json });
    expect(problem).toMatchObject({ field: `inputs.${name}`, creation: 'not_created' });
  });
});

it('inputs: nothing was made of any of them', async () => {
  const { items } = await server.expect(200, 'GET', '/v1/sandboxes');
  expect(items).toEqual([]);
});

it('inputs: the text "false" is false', async () => {
  const key = await server.key('default', 'agt', ['sandboxes', 'read']);
  const json = { profile: MEMORY_PROFILE.id, inputs: { elevated: 'false' } };
  const made = await server.expect(201, 'POST', '/v1/sandboxes', { json, key });
  expect(made.elevated).toBe(false);
});

it.each([
  ['repo_ref', 'bundle-v3'],
  ['repo_ref', '/etc'],
  ['compose_bundle_ref', '/etc'],
  ['compose_bundle_ref', '../other'],
  ['compose_bundle_ref', 'bundle-v3'],
])('inputs: %s %s of another than the administrator is refused by its field', async (name, value) => {
  const key = await server.key('default', 'agt', ['sandboxes', 'read']);
  const json = { profile: MEMORY_PROFILE.id, inputs: { [name]: value } };
  const answer = await server.call('POST', '/v1/sandboxes', { json, key });
  expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
  expect(answer.json).toMatchObject({ field: `inputs.${name}`, creation: 'not_created' });
});
