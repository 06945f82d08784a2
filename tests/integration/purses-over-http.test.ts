import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

let f: Fixture;
beforeAll(async () => {
  f = await startFixture();
});
afterAll(() => f.close());

const within = (workspace: string) => ({ 'sandboxer-workspace': workspace });
async function org(id: string, credits: Readonly<Record<string, number>>): Promise<void> {
  const made = await f.call('POST', '/v1/orgs', { json: { org_id: id, name: id } });
  expect(made.status).toBe(201);
  for (const [name, amount] of Object.entries(credits)) {
    const json = { workspace_id: name, org_id: id };
    expect((await f.call('POST', '/v1/workspaces', { json })).status).toBe(201);
    if (amount > 0) await grant(name, amount);
  }
}
async function grant(workspace: string, amount: number): Promise<void> {
  const json = { amount_micro_usd: amount };
  expect((await f.call('POST', '/v1/credits/grants', { json, headers: within(workspace) })).status).toBe(200);
}
const mode = (id: string, wanted: string) =>
  f.call('PUT', `/v1/orgs/${id}/credits`, { json: { mode: wanted } });
const available = async (workspace: string) =>
  (await f.call('GET', '/v1/credits', { headers: within(workspace) })).json.available_micro_usd;
const findings = async () => (await f.call('GET', '/v1/credits/audit')).json.findings;
const remove = (id: string, query = '') => f.call('DELETE', `/v1/workspaces/${id}${query}`);

describe('a shared purse, over HTTP', () => {
  it('a split gives each workspace its share by what it put in', async () => {
    await org('equal', { 'equal-a': 1_000_000, 'equal-b': 1_000_000 });
    await mode('equal', 'shared');
    expect(await available('equal-b')).toBe(2_000_000);
    await grant('equal-b', 1_000_001);
    await mode('equal', 'split');
    expect([await available('equal-a'), await available('equal-b')]).toEqual([1_000_000, 2_000_001]);
    await mode('equal', 'shared');
    await mode('equal', 'split');
    expect([await available('equal-a'), await available('equal-b')]).toEqual([1_000_000, 2_000_001]);
    expect(await findings()).toEqual([]);
  });

  it('credits on hold during a split of the purse return to the workspace that held them', async () => {
    await org('held', { 'held-a': 100, 'held-b': 100 });
    await mode('held', 'shared');
    const { ledger } = f.control;
    await f.store.transaction('hold', async (tx) => {
      const policy = await tx.ledger.policy('held-b');
      if (policy === null) throw new Error('no policy');
      const spender = { keyIds: [], keyId: null, profileId: 'p', actor: 'agt', runId: null } as never;
      const reserve = { amountMicroUsd: 60, ownKeyMicroUsd: 0 };
      const want = { ...reserve, lives: { seconds: 1, reserve: () => reserve }, cheapest: null, at: 1 };
      const owner = { holdId: 'h1', workspaceId: 'held-b', sandboxUid: 's1', generation: 1 };
      await ledger.hold(tx, { ...want, ...owner, policy, spender });
    });
    await mode('held', 'split');
    expect([await available('held-a'), await available('held-b')]).toEqual([70, 70]);
    await f.store.transaction('release', (tx) => ledger.resolve(tx, 'h1', 'voided', 2));
    expect([await available('held-a'), await available('held-b')]).toEqual([70, 130]);
    expect(await findings()).toEqual([]);
  });
});

describe('the deletion of a workspace that has credits', () => {
  it('the deletion of a workspace with credits is refused, with the ways to move them or take them back', async () => {
    await org('left', { 'left-a': 2_000_000, 'left-b': 5, 'left-c': 0 });
    const refused = await remove('left-a');
    expect(refused.status).toBe(409);
    expect(refused.json.remedy).toMatch(/credits=move.*credits=expire/);
    for (const query of ['?credits=move', '?to=left-b', '?credits=expire&to=left-b'])
      expect((await remove('left-a', query)).status).toBe(400);
    expect((await remove('left-a', '?credits=move&to=nobody')).status).toBe(404);
    expect((await remove('left-a', '?credits=move&to=left-a')).status).toBe(409);
    expect((await remove('left-a', '?credits=move&to=left-b')).status).toBe(204);
    expect(await available('left-b')).toBe(2_000_005);
    expect((await remove('left-b', '?credits=expire')).status).toBe(204);
    expect((await remove('left-c')).status).toBe(204);
    expect(await findings()).toEqual([]);
  });

  it('the deletion of the last workspace of a shared purse is refused', async () => {
    await org('last', { 'last-a': 10, 'last-b': 20 });
    await mode('last', 'shared');
    expect((await remove('last-a')).status).toBe(204);
    expect((await remove('last-b')).status).toBe(409);
    expect((await remove('last-b', '?credits=move&to=default')).status).toBe(204);
    expect(await findings()).toEqual([]);
  });

  it('credits that were stranded before are found by the audit', async () => {
    await org('lost', { 'lost-a': 7, 'lost-b': 9 });
    await f.store.transaction('delete', async (tx) => {
      const row = await tx.tenancy.workspace('lost-a');
      if (row) await tx.tenancy.updateWorkspace({ ...row, deletedAt: 1 });
      const policy = (await tx.ledger.policy('lost-b')) ?? { workspaceId: 'lost-b', budgets: [] };
      const limits = { maxLiving: null, createsPerMinute: null };
      await tx.ledger.setPolicy({ ...limits, ...policy, purse: 'liab:credits:org:lost' });
    });
    expect(await findings()).toEqual([
      { invariant: 'I14', subject: 'liab:credits:lost-a', detail: expect.stringContaining('deleted') },
      { invariant: 'I14', subject: 'liab:credits:lost-b', detail: expect.stringContaining('another purse') },
    ]);
  });
});
