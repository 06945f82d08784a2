import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestServer } from '../../support/test-server.ts';
import { MEMORY_PROFILE } from './fixture.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

interface Told {
  readonly type: string;
  readonly subject: string;
  readonly sequence: string;
}

it('events: the same version pushed in two workspaces has another subject in the feed of the server', async () => {
  for (const id of ['one', 'two']) {
    const key = await server.workspace(id);
    await server.expect(201, 'POST', '/v1/profiles', { key, json: MEMORY_PROFILE });
  }
  const headers = { accept: 'application/json' };
  const feed: { items: Told[] } = await server.expect(200, 'GET', '/v1/events?limit=200&after=0', {
    headers,
  });
  const pushed = feed.items.filter(({ type }) => type.includes('profile') && type.endsWith('pushed'));
  const places = new Set(pushed.map(({ subject, sequence }) => `${subject} ${sequence}`));
  expect(pushed.length).toBeGreaterThan(2);
  expect(places.size).toBe(pushed.length);
});
