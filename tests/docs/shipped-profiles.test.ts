import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.ts';
import type { CreateSandboxInput } from '../../src/contract/sandboxes/sandbox.ts';
import { CreateSandboxRequest } from '../../src/contract/sandboxes/sandbox.ts';
import { resolveRecipe } from '../../src/core/recipe/resolve-recipe.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = { path: path.join(root, 'profiles'), priority: 0, label: 'profiles' };
const catalogue = await loadCatalogue({ folders: [folder], pushed: [] });
const shipped = catalogue.list();

const caller = (actor: Caller['actor']): Caller => ({
  actor,
  workspaceId: 'w1',
  orgId: 'o1',
  keyId: 'key_aaaaaaaaaa',
  scopes: new Set(),
  local: false,
});

describe('shipped profiles', () => {
  it('shipped profiles are these, and load without an issue', () => {
    expect(catalogue.issues).toEqual([]);
    expect(shipped.map(({ profile }) => `${profile.id}@${profile.version}`)).toEqual([
      'profile.agent-dev@1.0.0',
      'profile.build@1.0.0',
      'profile.burst@1.0.0',
      'profile.compose-e2e@1.0.0',
      'profile.run@1.0.0',
      'profile.saas-daytona@1.0.0',
      'profile.saas-e2b@1.0.0',
      'profile.saas-modal@1.0.0',
      'profile.sandbox-canary@1.0.0',
      'profile.stub-basic@1.0.0',
      'profile.stub-metered@1.0.0',
      'profile.vm-haskell-build@1.0.0',
    ]);
  });

  it.each(shipped.map(({ source }) => source))('%s is valid for an editor too', (source) => {
    const schema = JSON.parse(readFileSync(path.join(root, 'docs/reference/profile.schema.json'), 'utf8'));
    const validate = new Ajv2020({ strict: true, strictTypes: false }).compile(schema);
    const document = parse(readFileSync(path.join(root, source), 'utf8'));
    validate(document);
    expect(validate.errors).toBeNull();
    expect(validate({ ...document, netwrok: {} })).toBe(false);
  });

  it('isolate and deny, except the stubs, which say so', () => {
    for (const { profile } of shipped) {
      const isStub = profile.id.startsWith('profile.stub-');
      expect([profile.id, profile.isolation.level === 'none']).toEqual([profile.id, isStub]);
      expect([profile.id, profile.extension === 'ext.saas-stub']).toEqual([profile.id, isStub]);
      expect([profile.id, profile.network.default]).toEqual([profile.id, isStub ? 'allow' : 'deny']);
      expect(profile.setup.secret_refs).toEqual([]);
    }
  });

  it('shipped profiles describe themselves', () => {
    for (const { profile } of shipped) expect(profile.description).toMatch(/\.$/);
  });
});

describe('the requests of SPEC §12', () => {
  const resolve = (input: CreateSandboxInput) => {
    const request = CreateSandboxRequest.parse(JSON.parse(JSON.stringify(input)));
    const { profile } = catalogue.get(request.profile, request.profile_version);
    return resolveRecipe(profile, request, caller(request.consumer.actor ?? 'agt')).recipe;
  };

  it('requests of glas-harness', () => {
    for (const mode of ['mirror', 'remote'] as const) {
      for (const access of ['none', 'ro', 'rw'] as const) {
        const recipe = resolve({
          profile: 'profile.agent-dev',
          scope: 'session',
          workspace: { mode, access },
          consumer: { actor: 'agt', harness: 'glas-harness', session_id: 's1' },
        });
        expect(recipe.workspace).toEqual({ mode: mode === 'remote' ? 'remote-canonical' : mode, access });
      }
    }
  });

  it('requests of wise-validator', () => {
    const recipe = resolve({
      profile: 'profile.compose-e2e',
      inputs: { repo_ref: 'https://git.example/r.git#main', compose_bundle_ref: 'compose.yml' },
      ttl: '2h',
      consumer: { actor: 'atm', harness: 'wise-validator', run_id: 'r1' },
    });
    expect(recipe).toMatchObject({ pinnedExtension: 'ext.compose-ssh', ttlSeconds: 7200 });
  });

  it('requests of snuggle-inventor', () => {
    const recipe = resolve({
      profile: 'profile.build',
      setup_metadata: {
        instructions_ref: 'https://docs.example/setup.md',
        secret_refs: ['env:NPM_TOKEN', 'PYPI'],
      },
      consumer: { actor: 'agt', harness: 'snuggle-inventor', job_id: 'j1' },
    });
    expect(recipe.secretRefs.map(({ name, delivery }) => [name, delivery])).toEqual([
      ['NPM_TOKEN', 'broker'],
      ['PYPI', 'broker'],
    ]);
  });

  it('an empty request', () => {
    expect(resolve({})).toMatchObject({
      profileId: 'profile.sandbox-canary',
      ttlSeconds: 3600,
      idleReapSeconds: 900,
    });
  });

  it('the request of sandboxer run, which puts nothing into an image and lasts', () => {
    const recipe = resolve({ profile: 'profile.run', image: 'scratch', ttl: '7d' });
    expect(recipe).toMatchObject({ image: 'scratch', ttlSeconds: 7 * 86_400, setupRun: [] });
    expect(resolve({ profile: 'profile.run' }).ttlSeconds).toBe(86_400);
  });
});
