import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

let f: Fixture;
beforeAll(async () => {
  f = await startFixture();
});
afterAll(() => f.close());

const grant = (json: object) => f.call('POST', '/v1/credits/grants', { json });

describe('a repeated reference of a grant, over HTTP', () => {
  it('a repeated reference of a grant adds nothing again, and is refused with another amount or kind', async () => {
    const given = { amount_micro_usd: 100, reference: 'invoice-1', kind: 'grant' };
    const first = await grant(given);
    expect(first.status).toBe(200);
    const again = await grant(given);
    expect(again.status).toBe(200);
    expect(again.json).toEqual(first.json);
    for (const other of [{ amount_micro_usd: 500 }, { kind: 'top_up' }]) {
      const refused = await grant({ ...given, ...other });
      expect(refused.status).toBe(422);
      expect(refused.json).toMatchObject({ code: 'SBX_IDEMPOTENCY_MISMATCH', remedy: expect.any(String) });
    }
    expect((await f.call('GET', '/v1/credits')).json).toEqual(first.json);
  });
});
