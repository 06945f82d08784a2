import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeyScope } from '../../../src/contract/tenancy/tenancy.ts';
import { TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.close());

interface Key {
  readonly key_id: string;
  readonly secret: string;
  readonly actor: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
}

const SCOPES = KeyScope.options;
const ACTORS = ['adm', 'agt', 'atm'] as const;

async function make(json: object, key?: string): Promise<Key> {
  const request = { name: 'k', ...json };
  return server.expect(201, 'POST', '/v1/keys', { json: request, ...(key === undefined ? {} : { key }) });
}

const endOf = ({ expires_at }: Key) =>
  expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);

/** Whether `made` has no more than `maker`, which has every scope where it has `server`. */
function isWithin(made: Key, maker: Key): boolean {
  const scopes = made.scopes.every(
    (scope) => maker.scopes.includes('server') || maker.scopes.includes(scope),
  );
  return scopes && (made.actor !== 'adm' || maker.actor === 'adm') && endOf(made) <= endOf(maker);
}

const request = fc.record(
  {
    actor: fc.constantFrom(...ACTORS),
    scopes: fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1 }),
    expires_in: fc.constantFrom(60, 3_600, '30d', '3650d'),
  },
  { requiredKeys: ['actor', 'scopes'] },
);

describe('a key makes no key with more than it has', () => {
  it('keys: what a key makes or rotates is within its scopes, its actor and its end', async () => {
    await fc.assert(
      fc.asyncProperty(
        request,
        request,
        fc.option(fc.constantFrom(30, '2d', '3650d')),
        async (own, wanted, renewed) => {
          const maker = await make({ ...own, scopes: [...new Set([...own.scopes, 'keys'])] });
          const { secret: key } = maker;
          const made = await server.call('POST', '/v1/keys', { key, json: { name: 'made', ...wanted } });
          expect([201, 403]).toContain(made.status);
          if (made.status === 201) expect(isWithin(made.json, maker)).toBe(true);
          const json = renewed === null ? {} : { expires_in: renewed };
          const successor = await server.call('POST', `/v1/keys/${maker.key_id}/rotate`, { key, json });
          expect([201, 403]).toContain(successor.status);
          if (successor.status === 201) expect(isWithin(successor.json, maker)).toBe(true);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('keys: an end that is not asked for is that of the maker, a later one is refused', async () => {
    const maker = await make({ scopes: ['keys', 'read'], expires_in: 600 });
    const made = await make({ scopes: ['read'] }, maker.secret);
    expect(made.expires_at).toBe(maker.expires_at);
    const json = { name: 'late', scopes: ['read'], expires_in: 700 };
    const refused = await server.call('POST', '/v1/keys', { key: maker.secret, json });
    expect(refused).toMatchObject({ status: 403, json: { code: 'SBX_FORBIDDEN', field: 'expires_in' } });
    const rotated = await server.expect(201, 'POST', `/v1/keys/${maker.key_id}/rotate`, {
      key: maker.secret,
    });
    expect(rotated).toMatchObject({ expires_at: maker.expires_at, rotated_from: maker.key_id });
  });

  it('keys: an administrator without an end renews a key for as long as it had', async () => {
    const key = await make({ scopes: ['read'], expires_in: 600 });
    const rotated: Key = await server.expect(201, 'POST', `/v1/keys/${key.key_id}/rotate`);
    expect(endOf(rotated)).toBeGreaterThan(endOf(key) - 1);
  });

  it('keys: makers below makers end after eight levels', async () => {
    let key: string | undefined;
    for (let level = 0; level < 8; level += 1) ({ secret: key } = await make({ scopes: ['keys'] }, key));
    const json = { name: 'deep', scopes: ['keys'] };
    const deeper = await server.call('POST', '/v1/keys', { key: key as string, json });
    expect(deeper.status).toBe(403);
  });
});

describe('a key ends and rotates no key with more than it has', () => {
  it('keys: a key with another scope or the actor adm is refused, its own and those below it are not', async () => {
    const agent = await make({ scopes: ['keys', 'read'] });
    const stronger = [
      await make({ actor: 'adm', scopes: ['read'] }),
      await make({ scopes: ['sandboxes'] }),
      await make({ actor: 'adm', scopes: SCOPES }),
    ];
    for (const { key_id, secret } of stronger) {
      const revoked = await server.call('DELETE', `/v1/keys/${key_id}`, { key: agent.secret });
      expect(revoked).toMatchObject({ status: 403, json: { code: 'SBX_FORBIDDEN' } });
      const rotated = await server.call('POST', `/v1/keys/${key_id}/rotate`, { key: agent.secret });
      expect(rotated.status).toBe(403);
      await server.expect(200, 'GET', '/v1/whoami', { key: secret });
    }
    const weaker = await make({ scopes: ['read'] });
    await server.expect(200, 'DELETE', `/v1/keys/${weaker.key_id}`, { key: agent.secret });
    await server.expect(200, 'DELETE', `/v1/keys/${agent.key_id}`, { key: agent.secret });
  });

  it('keys: revoking a key ends what it made, at every depth, unless that is to stay', async () => {
    const chain = async () => {
      const first = await make({ scopes: ['keys', 'read'] });
      const second = await make({ scopes: ['keys', 'read'] }, first.secret);
      const third = await make({ scopes: ['read'] }, second.secret);
      return [first, second, third] as const;
    };
    const status = async ({ secret }: Key) =>
      (await server.call('GET', '/v1/whoami', { key: secret })).status;
    const [first, second, third] = await chain();
    // A successor takes over what the key before it made.
    const successor: Key = await server.expect(201, 'POST', `/v1/keys/${first.key_id}/rotate`);
    expect([await status(first), await status(second), await status(third)]).toEqual([401, 200, 200]);
    await server.expect(200, 'DELETE', `/v1/keys/${successor.key_id}`);
    expect([await status(second), await status(third)]).toEqual([401, 401]);
    const ended = await server.expect(200, 'GET', `/v1/audit?action=revokeKey&target=${third.key_id}`);
    expect(ended.items).toMatchObject([{ outcome: 'ok', details: { made_by: first.key_id } }]);

    const [top, ...below] = await chain();
    await server.expect(200, 'DELETE', `/v1/keys/${top.key_id}?keep_made=true`);
    expect(await Promise.all([top, ...below].map(status))).toEqual([401, 200, 200]);
  });
});

describe('money comes by the scope billing', () => {
  it('grants and top-ups: an administrator of a tenant with every other scope is refused, and cannot give itself the scope', async () => {
    const scopes = SCOPES.filter((scope) => scope !== 'server' && scope !== 'billing');
    const key = await server.workspace('tenant', scopes);
    for (const kind of ['grant', 'top_up']) {
      const json = { amount_micro_usd: 1_000_000, kind };
      const refused = await server.call('POST', '/v1/credits/grants', { key, json });
      expect(refused).toMatchObject({ status: 403, json: { code: 'SBX_FORBIDDEN' } });
      expect(refused.json.remedy).toContain('billing');
    }
    const json = { name: 'rich', actor: 'adm', scopes: ['billing'] };
    expect((await server.call('POST', '/v1/keys', { key, json })).status).toBe(403);
    await server.expect(201, 'POST', '/v1/budgets', {
      key,
      json: { scope: 'workspace', period: 'day', limit_micro_usd: 1 },
    });
    expect(await server.expect(200, 'GET', '/v1/credits', { key })).toMatchObject({ available_micro_usd: 0 });
  });

  it('grants: a key with the scope billing, and the operator with server, bring money', async () => {
    const seller = await server.key('default', 'adm', ['billing']);
    const operator = await server.key('default', 'adm', ['server']);
    const json = { amount_micro_usd: 5 };
    for (const key of [seller, operator])
      await server.expect(200, 'POST', '/v1/credits/grants', { key, json });
  });
});
