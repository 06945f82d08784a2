import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/contract/errors/errors.ts';
import { ERRORS, SandboxerError } from '../../src/contract/errors/errors.ts';
import { memoryDatabase } from '../../src/store/memory/memory-database.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';
import type { Fixture } from './http/fixture.ts';
import { MEMORY_PROFILE, startFixture } from './http/fixture.ts';

const database = memoryDatabase();
const second = createMemoryExtension({ id: 'ext.memory#b' });
const { provision } = second;
/** Fails as a request has it fail, as backends do with what requests bring. */
second.provision = async (spec, ctx) => {
  const { throws } = spec.recipe.inputs;
  if (typeof throws !== 'string') return provision.call(second, spec, ctx);
  throw new SandboxerError(throws as ErrorCode, 'as the request has it', { creation: 'not_created' });
};
const MORE_THAN_A_BREAKER_BEARS = 8;

function profile(name: string, over: object = {}): Record<string, unknown> {
  const { extension: _, ...base } = MEMORY_PROFILE;
  const route = { order: ['ext.memory', 'ext.memory#b'], only: ['ext.memory'] };
  return { ...base, id: `profile.stub-${name}`, route, ...over };
}

let f: Fixture;
async function start(): Promise<void> {
  // The fixture adds ext.memory itself; both backends outlive it.
  f = await startFixture({ store: new MemoryStore(database), extensions: [second] });
}

const inWorkspace = (name: string) => ({ headers: { 'sandboxer-workspace': name } });

async function push(workspace: string, document: Record<string, unknown>): Promise<void> {
  const answer = await f.call('POST', '/v1/profiles', { json: document, ...inWorkspace(workspace) });
  expect(answer.status, answer.text).toBe(201);
}

/** What the second tenant is offered: rank, exclusions and standing of every backend. */
async function offered(): Promise<unknown> {
  const request = { json: { profile: 'profile.stub-honest' }, ...inWorkspace('honest') };
  const { json } = await f.call('POST', '/v1/routes/resolve', request);
  type Candidate = {
    extension: string;
    rank: number;
    excluded_by: unknown;
    standing: Record<string, unknown>;
  };
  return json.candidates.map(({ extension, rank, excluded_by, standing }: Candidate) => {
    const { breaker, success, samples, key_refused, wait_ms } = standing;
    return { extension, rank, excluded_by, breaker, success, samples, key_refused, wait_ms };
  });
}

beforeAll(async () => {
  await start();
  for (const name of ['honest', 'careless'])
    await f.call('POST', '/v1/workspaces', { json: { workspace_id: name, org_id: 'default' } });
  await push('honest', profile('honest'));
  await push('careless', profile('fails', { setup: { run: ['exit 3'] } }));
  await push('careless', profile('storms', { route: { only: ['ext.memory#b'] } }));
  await push('careless', profile('slow', { setup: { run: ['sleep 1.2'] } }));
  await push('careless', profile('hangs', { setup: { run: ['sleep 60'] } }));
});
afterAll(() => f.close());

/** Codes that a tenant's own requests can bring about; a refused key is its own where it stored one. */
const OWN_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) =>
  ['caller', 'capacity'].includes(ERRORS[code].fault),
);

const careless = inWorkspace('careless');
let asked = 0;

async function ask(profileId: string, inputs: object, wait = ''): Promise<string> {
  asked += 1;
  const id = `storm-${asked}`;
  const json = { profile: profileId, id, inputs };
  const made = await f.call('POST', `/v1/sandboxes${wait}`, { json, ...careless });
  expect(made.json.state, made.text).not.toBe('ready');
  return id;
}

describe('effects of one tenant on another', () => {
  it('a sequence of faults of one tenant changes no other tenant’s plan', async () => {
    const act = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...OWN_CODES) },
      { weight: 1, arbitrary: fc.constantFrom('setup' as const, 'given up' as const) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(act, { minLength: 1, maxLength: 12 }),
        fc.nat({ max: 12 }),
        async (acts, restartAt) => {
          const before = await offered();
          for (const [n, one] of acts.entries()) {
            if (one === 'setup') await ask('profile.stub-fails', {});
            else if (one === 'given up') {
              const id = await ask('profile.stub-hangs', {}, '?wait=none');
              await f.call('DELETE', `/v1/sandboxes/${id}`, careless);
            } else await ask('profile.stub-storms', { throws: one });
            if (n !== restartAt) continue;
            await f.close();
            await start();
          }
          expect(await offered()).toEqual(before);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('setup commands that fail change no other tenant’s route and are tried on one backend', async () => {
    const before = await offered();
    for (let n = 0; n < MORE_THAN_A_BREAKER_BEARS; n += 1) {
      const json = { profile: 'profile.stub-fails', id: `fails-${n}` };
      const answer = await f.call('POST', '/v1/sandboxes', { json, ...inWorkspace('careless') });
      expect(answer).toMatchObject({
        status: 422,
        json: { code: 'SBX_SETUP_FAILED', fault: 'caller', creation: 'created', backend: 'ext.memory' },
      });
      const route = await f.call('GET', `/v1/sandboxes/fails-${n}/route`, inWorkspace('careless'));
      expect(route.json.attempts).toHaveLength(1);
    }
    expect(await offered()).toEqual(before);
  });

  it('abandoned creates change no other tenant’s route, also after a restart', async () => {
    const before = await offered();
    for (let n = 0; n < MORE_THAN_A_BREAKER_BEARS; n += 1) {
      const json = { profile: 'profile.stub-hangs', id: `hangs-${n}` };
      const made = await f.call('POST', '/v1/sandboxes?wait=none', { json, ...inWorkspace('careless') });
      expect(made.status).toBe(202);
      const gone = await f.call('DELETE', `/v1/sandboxes/hangs-${n}`, inWorkspace('careless'));
      expect(gone.status).toBe(200);
    }
    expect(await offered()).toEqual(before);
    await f.close();
    await start();
    expect(await offered()).toEqual(before);
  });

  it('setup commands that take long do not make the backend slow for others, also after a restart', async () => {
    const json = { profile: 'profile.stub-slow', id: 'slow' };
    const made = await f.call('POST', '/v1/sandboxes', { json, ...careless });
    expect(made.status, made.text).toBe(201);
    await f.call('DELETE', '/v1/sandboxes/slow', careless);
    const quick = [{ wait_ms: expect.toSatisfy((ms: number) => ms < 1000) }, {}];
    expect(await offered()).toMatchObject(quick);
    await f.close();
    await start();
    expect(await offered()).toMatchObject(quick);
  });

  it('successes of destroyed sandboxes are still known after a restart', async () => {
    for (let n = 0; n < 3; n += 1) {
      const json = { profile: 'profile.stub-honest', id: `works-${n}` };
      const made = await f.call('POST', '/v1/sandboxes', { json, ...inWorkspace('honest') });
      expect(made.status, made.text).toBe(201);
      await f.call('DELETE', `/v1/sandboxes/works-${n}`, inWorkspace('honest'));
    }
    const [known] = (await offered()) as [{ samples: number }];
    expect(known.samples).toBe(4);
    await f.close();
    await start();
    expect(await offered()).toMatchObject([{ samples: 4 }, { samples: 0 }]);
  });
});
