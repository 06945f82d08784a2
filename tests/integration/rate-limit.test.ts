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

it('answers 429 with the time to wait, per key, and recovers', async () => {
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

it('does not limit the local administrator', async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => server.call('GET', '/v1/sandboxes')));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(answers[0]?.headers['ratelimit-limit']).toBeUndefined();
});
