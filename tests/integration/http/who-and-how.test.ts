/** What a sandbox says of who asked for it, how it is set up, and why it failed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProvisionSpec } from '../../../src/core/ports/extension.ts';
import { createMemoryExtension } from '../../../src/testing/memory/memory-extension.ts';
import { TestServer } from '../../support/test-server.ts';
import type { Fixture } from './fixture.ts';
import { MEMORY_PROFILE, startFixture } from './fixture.ts';

describe('the actor that a consumer names', () => {
  let server: TestServer;
  const keys: Record<string, string> = {};
  beforeAll(async () => {
    server = await TestServer.start();
    for (const actor of ['adm', 'agt', 'atm'])
      keys[actor] = await server.key('default', actor, ['sandboxes', 'read']);
  });
  afterAll(() => server.close());

  const asking = (path: string, key: string, actor: string) =>
    server.call('POST', path, {
      key: keys[key] as string,
      json: { profile: MEMORY_PROFILE.id, consumer: { actor } },
    });

  it.each([
    ['adm', 'adm', 201],
    ['adm', 'agt', 201],
    ['adm', 'atm', 201],
    ['agt', 'agt', 201],
    ['agt', 'atm', 201],
    ['atm', 'agt', 201],
    ['atm', 'atm', 201],
    ['agt', 'adm', 403],
    ['atm', 'adm', 403],
  ])('a key of %s that acts for %s: %i', async (key, actor, status) => {
    const made = await asking('/v1/sandboxes', key, actor);
    expect(made.status, made.text).toBe(status);
    if (status === 201) expect(made.json).toMatchObject({ actor: key, consumer: { actor } });
    else expect(made.json).toMatchObject({ code: 'SBX_FORBIDDEN', field: 'consumer.actor' });
  });

  it('quotes and routes refuse the same', async () => {
    for (const path of ['/v1/quotes', '/v1/routes/resolve'])
      expect(await asking(path, 'agt', 'adm')).toMatchObject({
        status: 403,
        json: { field: 'consumer.actor' },
      });
  });
});

describe('setup', () => {
  const specs: ProvisionSpec[] = [];
  const seeing = createMemoryExtension({ id: 'ext.seeing' });
  const { provision } = seeing;
  seeing.provision = (spec, ctx) => {
    specs.push(spec);
    return provision.call(seeing, spec, ctx);
  };
  let f: Fixture;
  beforeAll(async () => {
    f = await startFixture({ extensions: [seeing] });
    const setup = { instructions: 'Run make.', run: [] };
    const json = { ...MEMORY_PROFILE, id: 'profile.stub-told', extension: 'ext.seeing', setup };
    expect((await f.call('POST', '/v1/profiles', { json })).status).toBe(201);
  });
  afterAll(() => f.close());

  it('instructions of profile and request can be read back and reach the bootstrap of the backend', async () => {
    const setup_metadata = { instructions: 'Then make test.', instructions_ref: 'docs/setup.md@main' };
    const json = { profile: 'profile.stub-told', id: 'told', setup_metadata };
    const made = await f.call('POST', '/v1/sandboxes', { json });
    expect(made.status, made.text).toBe(201);
    const told = {
      instructions: 'Run make.\n\nThen make test.',
      instructions_ref: 'docs/setup.md@main',
      items: [],
    };
    expect((await f.call('GET', new URL(made.json.links.setup, 'http://x').pathname)).json).toEqual(told);
    expect(specs.at(-1)?.recipe).toMatchObject({
      instructions: told.instructions,
      instructionsRef: told.instructions_ref,
    });
    await f.call('POST', '/v1/sandboxes/told/recreate');
    expect((await f.call('GET', '/v1/sandboxes/told/setup')).json).toEqual(told);
    expect(specs).toHaveLength(2);
    expect(specs[1]?.recipe.instructionsRef).toBe(told.instructions_ref);
  });

  it('a sandbox without instructions has none', async () => {
    const id = await f.create();
    expect((await f.call('GET', `/v1/sandboxes/${id}/setup`)).json).toEqual({
      instructions: '',
      instructions_ref: null,
      items: [],
    });
  });
});

describe('extend', () => {
  let f: Fixture;
  beforeAll(async () => {
    f = await startFixture();
  });
  afterAll(() => f.close());

  it('a deadline that the profile cuts, or that is earlier than before, is in the answer', async () => {
    const id = await f.create();
    const extend = async (ttl: string) =>
      (await f.call('POST', `/v1/sandboxes/${id}/extend`, { json: { ttl } })).json;
    const before = (await f.call('GET', `/v1/sandboxes/${id}`)).json;
    const longer = await extend('90m');
    expect(longer.extended).toEqual({
      previous_expires_at: before.expires_at,
      asked_expires_at: longer.expires_at,
      limited: false,
    });
    const cut = await extend('99d');
    expect(cut.expires_at).toBe(cut.max_expires_at);
    expect(cut.extended).toMatchObject({ previous_expires_at: longer.expires_at, limited: true });
    expect(Date.parse(cut.extended.asked_expires_at)).toBeGreaterThan(Date.parse(cut.expires_at));
    const shorter = await extend('10m');
    expect(shorter.extended).toEqual({
      previous_expires_at: cut.expires_at,
      asked_expires_at: shorter.expires_at,
      limited: false,
    });
    expect(Date.parse(shorter.expires_at)).toBeLessThan(Date.parse(cut.expires_at));
  });
});
