import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestServer } from '../support/test-server.ts';

let server: TestServer;
let key: string;
beforeAll(async () => {
  server = await TestServer.start(() => ({ rate_limit: { per_second: 5, burst: 10 } }));
  key = await server.key('default', 'agt', ['read', 'sandboxes']);
});
afterAll(() => server.close());

it('the rate limit answers 429 with the time to wait, per key, and recovers', async () => {
  // More than what comes back to the key while they are answered, also slowly.
  const answers = await Promise.all(
    Array.from({ length: 80 }, () => server.call('GET', '/v1/sandboxes', { key })),
  );
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(10);
  expect(refused.length).toBeGreaterThanOrEqual(4);
  const [first] = refused;
  expect(first?.json).toMatchObject({ code: 'SBX_RATE_LIMITED', retryable: true, retry_after_seconds: 1 });
  expect(first?.headers).toMatchObject({
    'retry-after': '1',
    'ratelimit-limit': '10',
    'ratelimit-remaining': '0',
    'ratelimit-reset': expect.stringMatching(/^[12]$/),
  });
  expect(answers[0]?.headers['ratelimit-remaining']).toBe('9');
  const other = await server.key('default', 'agt', ['read']);
  expect((await server.call('GET', '/v1/sandboxes', { key: other })).status).toBe(200);
  await sleep(1_000);
  expect((await server.call('GET', '/v1/sandboxes', { key })).status).toBe(200);
});

it('the rate limit does not apply to the local administrator', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => server.call('GET', '/v1/sandboxes')));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(answers[0]?.headers['ratelimit-limit']).toBeUndefined();
});

it('rate limit: a key shares its own with its successors and with the keys it makes, at every depth', async () => {
  const operator = await server.key('default', 'adm', ['server', 'keys']);
  const made = async (maker: string) => {
    const json = { name: 'k', scopes: ['read', 'keys'] };
    return (await server.call('POST', '/v1/keys', { key: maker, json })).json as {
      key_id: string;
      secret: string;
    };
  };
  const left = async (secret: string) =>
    Number((await server.call('GET', '/v1/sandboxes', { key: secret })).headers['ratelimit-remaining']);
  const [first, neighbour] = [await made(operator), await made(operator)];
  const second = await made(first.secret);
  const third = await made(second.secret);
  const rotated = await server.call('POST', `/v1/keys/${third.key_id}/rotate`, { key: second.secret });
  const busy = Array.from({ length: 80 }, () => left(first.secret));
  const ofMade = [second.secret, rotated.json.secret].map(left);
  expect(Math.max(...(await Promise.all(ofMade)))).toBeLessThan(5);
  await Promise.all(busy);
  expect(await left(neighbour.secret)).toBe(9);
});
