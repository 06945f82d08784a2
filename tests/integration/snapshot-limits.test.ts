/** How many snapshots a workspace may have, and which of them go by themselves. */
import { afterAll, expect, it } from 'vitest';
import { TestServer, until } from '../support/test-server.ts';
import { MEMORY_PROFILE } from './http/fixture.ts';

const limited = await TestServer.start((config) => ({ limits: { ...config.limits, snapshots: 2 } }));
const thinned = await TestServer.start((config) => ({
  retention: { ...config.retention, snapshot_count: 2 },
  timing: { ...config.timing, reconcile: 200 },
}));
afterAll(async () => {
  await limited.close();
  await thinned.close();
});

async function snapshotsOf(server: TestServer): Promise<{ snapshot_id: string; name: string | null }[]> {
  return (await server.expect(200, 'GET', '/v1/snapshots')).items;
}

it('a snapshot beyond the workspace’s limit is refused, with a remedy; a deleted one makes room', async () => {
  const id = await limited.sandbox();
  const take = (name: string) => limited.call('POST', `/v1/sandboxes/${id}/snapshots`, { json: { name } });
  const first = await take('first');
  expect([first.status, (await take('second')).status]).toEqual([201, 201]);
  const refused = await take('third');
  expect(refused.json).toMatchObject({
    code: 'SBX_QUOTA_EXCEEDED',
    remedy: expect.stringContaining('Delete'),
  });
  const { snapshot_id } = first.json as { snapshot_id: string };
  await limited.expect(200, 'DELETE', `/v1/snapshots/${snapshot_id}`);
  expect((await take('third')).status).toBe(201);
  // It is the workspace's own limit, and no other's.
  const key = await limited.workspace('neighbour');
  await limited.expect(201, 'POST', '/v1/profiles', { key, json: MEMORY_PROFILE });
  const theirs = await limited.sandbox({ key });
  const more = await limited.call('POST', `/v1/sandboxes/${theirs}/snapshots`, { key, json: {} });
  expect(more.status).toBe(201);
});

it('retention deletes the oldest snapshots without a name first; a name keeps one', async () => {
  const id = await thinned.sandbox();
  const take = async (json: { name?: string }) =>
    (await thinned.expect(201, 'POST', `/v1/sandboxes/${id}/snapshots`, { json })).snapshot_id as string;
  const named = await take({ name: 'kept' });
  const taken: string[] = [];
  for (let n = 0; n < 4; n++) taken.push(await take({}));
  await until('the oldest are gone', async () => {
    const left = (await snapshotsOf(thinned)).map(({ snapshot_id }) => snapshot_id).sort();
    return left.join() === [named, ...taken.slice(2)].sort().join();
  });
  const deleted = (await thinned.events()).filter(({ type }) => type.endsWith('snapshot.deleted'));
  expect(deleted.length).toBe(2);
  await thinned.expect(404, 'GET', `/v1/snapshots/${taken[0]}`);
});
