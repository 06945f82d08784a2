import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fixture } from './fixture.ts';
import { startFixture } from './fixture.ts';

let f: Fixture;
let id: string;
beforeAll(async () => {
  f = await startFixture();
  id = await f.create();
}, 60_000);
afterAll(() => f?.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const entries = (count: number) => Array.from({ length: count }, (_, at) => `"a${at}":0`).join(',');
const post = (path: string, body: string) => f.call('POST', path, { body, headers: JSON_TYPE });

describe('JSON bodies', () => {
  it.each([
    ['env of an exec', () => `/v1/sandboxes/${id}/exec`, 'env', 700_000],
    ['env of a create', () => '/v1/sandboxes', 'env', 80_000],
    ['labels of a create', () => '/v1/sandboxes', 'labels', 80_000],
    ['inputs of a quote', () => '/v1/quotes', 'inputs', 80_000],
    ['unknown field of a route', () => '/v1/routes/resolve', 'x', 80_000],
  ])('%s with very many entries is refused before they become objects', async (_what, path, field, count) => {
    const before = performance.now();
    const answer = await post(path(), `{"${field}":{${entries(count)}}}`);
    expect(answer.status).toBe(400);
    expect(answer.json.detail).toContain('more than 50000 values');
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  it('a map with some hundred wrong entries is refused with one issue', async () => {
    const answer = await post(`/v1/sandboxes/${id}/exec`, `{"command":["true"],"env":{${entries(1_000)}}}`);
    expect(answer.status).toBe(400);
    expect(answer.json.issues).toHaveLength(1);
    expect(answer.json.field).toBe('env.a0');
  });

  it('JSON above 256 KiB is refused with 413 where the route needs no more', async () => {
    const padding = ' '.repeat(256 * 1024);
    for (const path of [
      '/v1/keys',
      '/v1/volumes',
      '/v1/webhooks',
      `/v1/sandboxes/${id}/extend`,
      '/v1/profiles',
    ]) {
      const answer = await post(path, `{"x":1}${padding}`);
      expect([path, answer.status]).toEqual([path, 413]);
    }
  });

  it('an exec takes 8 MB of input and gives back what the program makes of it', async () => {
    const stdin = 'aé'.repeat(2_000_000);
    const answer = await f.call('POST', `/v1/sandboxes/${id}/exec`, {
      json: { command: ['cat'], stdin },
    });
    expect(answer.status).toBe(200);
    expect(answer.json.stdout === stdin).toBe(true);
  });
});
