import { describe, expect, it } from 'vitest';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ProfileInput } from '../../contract/profiles/profile.ts';
import { Profile } from '../../contract/profiles/profile.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { Caller } from '../tenancy/caller.ts';
import { recipeFingerprint, resolveRecipe, scopeKey } from './resolve-recipe.ts';

const agent: Caller = {
  actor: 'agt',
  workspaceId: 'w1',
  orgId: 'o1',
  keyId: 'key_aaaaaaaaaa',
  scopes: new Set(),
  local: false,
};
const admin: Caller = { ...agent, actor: 'adm', keyId: null, local: true };

type Parts = Omit<ProfileInput, 'id' | 'version'>;

const profileOf = (parts: Parts = {}) => Profile.parse({ id: 'profile.test', version: '1.0.0', ...parts });
const requestOf = (parts: CreateSandboxInput = {}) => CreateSandboxRequest.parse(parts);
const resolve = (profile: Parts, request: CreateSandboxInput = {}, caller = agent) =>
  resolveRecipe(profileOf(profile), requestOf(request), caller).recipe;

function refusalOf(profile: Parts, request: CreateSandboxInput, caller = agent): SandboxerError {
  try {
    resolve(profile, request, caller);
  } catch (error) {
    if (error instanceof SandboxerError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

function expectRefusal(profile: Parts, request: CreateSandboxInput, field: string, caller = agent) {
  const error = refusalOf(profile, request, caller);
  expect({ code: error.code, field: error.extras.field }).toEqual({ code: 'SBX_INVALID_REQUEST', field });
  expect(error.extras.remedy).toBeTruthy();
}

describe('ttl', () => {
  const ttl = { default: '1h', max: '4h' };

  it('a ttl is the default when the request has none', () => {
    const { recipe, ttlSeconds } = resolveRecipe(profileOf({ ttl }), requestOf(), agent);
    expect([ttlSeconds, recipe.ttlSeconds, recipe.maxTtlSeconds]).toEqual([3600, 3600, 14_400]);
  });

  it('a ttl may be anything up to the maximum', () => {
    expect(resolve({ ttl }, { ttl: '4h' }).ttlSeconds).toBe(14_400);
  });

  it('a ttl above the maximum is refused, and the remedy names the maximum', () => {
    expectRefusal({ ttl }, { ttl: '4h1s' }, 'ttl');
    expect(refusalOf({ ttl }, { ttl: '5h' }).remedy).toContain('4h');
  });
});

describe('overrides', () => {
  it('profile overrides are refused unless the profile lists them', () => {
    const none = {};
    expectRefusal(none, { image: 'debian' }, 'image');
    expectRefusal(none, { resources: { cpu: 1 } }, 'resources.cpu');
    expectRefusal(none, { workspace: { mode: 'mirror' } }, 'workspace.mode');
    expectRefusal({ workspace: { access: 'ro' } }, { workspace: { access: 'rw' } }, 'workspace.access');
    expectRefusal({ ttl: { default: 60, max: 60, idle_reap: 30 } }, { idle_reap: null }, 'idle_reap');
    expectRefusal({ ttl: { default: 60, max: 60, idle_reap: 30 } }, { idle_reap: 31 }, 'idle_reap');
  });

  it('profile overrides are taken where the profile lists them', () => {
    const profile: Parts = { overridable: ['image', 'resources', 'workspace', 'idle_reap'] };
    const recipe = resolve(profile, {
      image: 'debian',
      env: { A: '1' },
      resources: { cpu: 2, memory_mb: '1GiB', gpu: 'h100' },
      workspace: { mode: 'mirror', access: 'ro' },
      idle_reap: '10m',
    });
    expect(recipe).toMatchObject({
      image: 'debian',
      variables: { A: '1' },
      resources: { cpu: 2, memory_mb: 1024, disk_mb: null, gpu: 'h100' },
      workspace: { mode: 'mirror', access: 'ro' },
      idleReapSeconds: 600,
    });
  });

  it('overrides need no leave when they ask for the same or for less', () => {
    const profile: Parts = {
      image: 'debian',
      resources: { cpu: 4, memory_mb: 4096 },
      ttl: { default: 60, max: 60, idle_reap: 30 },
    };
    const recipe = resolve(profile, {
      image: 'debian',
      resources: { cpu: 1, memory_mb: 4096 },
      workspace: { mode: 'remote', access: 'none' },
      idle_reap: 10,
      env: {},
    });
    expect(recipe.resources).toMatchObject({ cpu: 1, memory_mb: 4096 });
    expect(recipe.workspace).toEqual({ mode: 'remote-canonical', access: 'none' });
    expect(recipe.idleReapSeconds).toBe(10);
  });

  it('overrides leave a limit alone that the request does not mention', () => {
    expect(resolve({ resources: { cpu: 4, pids: 100 } }, { resources: { cpu: 2 } }).resources.pids).toBe(100);
  });

  it('overrides merge variables: profile, then setup_metadata, then env', () => {
    const profile: Parts = { setup: { variables: { A: 'p', B: 'p', C: 'p' } } };
    const request = { setup_metadata: { variables: { B: 's', C: 's' } }, env: { C: 'e' } };
    expect(resolve(profile, request).variables).toEqual({ A: 'p', B: 's', C: 'e' });
  });

  it('attach instructions to those of the profile', () => {
    const request = { setup_metadata: { instructions: 'Then that.', instructions_ref: 'git:x' } };
    const recipe = resolve({ setup: { instructions: 'First this.' } }, request);
    expect(recipe.instructions).toBe('First this.\n\nThen that.');
    expect(recipe.instructionsRef).toBe('git:x');
  });
});

describe('network', () => {
  const network = {
    egress: [
      { host: 'api.github.com', methods: ['GET', 'POST'], credential: 'GITHUB' },
      { host: '*.example.org' },
    ],
  };
  const setup = { secret_refs: [{ name: 'GITHUB' }] };
  const profile: Parts = { network, setup };

  it('the network of a request may be narrowed by every caller', () => {
    expect(resolve(profile, { network: { default: 'deny' } }).network.egress).toEqual([]);
    const egress = [{ host: 'api.github.com', methods: ['GET'] }, { host: 'registry.example.org' }];
    expect(resolve(profile, { network: { egress } }).network.egress).toHaveLength(2);
    expect(resolve({ network: { default: 'allow' } }, { network: { egress } }).network.default).toBe('deny');
  });

  it.each([
    ['another host', { host: 'example.org' }],
    ['the parent of a wildcard', { host: 'example.org' }],
    ['two labels below a wildcard', { host: 'a.b.example.org' }],
    ['a lookalike of a wildcard', { host: 'evilexample.org' }],
    ['a wider wildcard', { host: '*.org' }],
    ['another port', { host: 'registry.example.org', port: 80 }],
    ['another method', { host: 'api.github.com', methods: ['DELETE'] }],
    ['any method', { host: 'api.github.com' }],
    ['a credential for another host', { host: 'registry.example.org', credential: 'GITHUB' }],
  ])('the network of a request is refused: %s', (_name, rule) => {
    expectRefusal(profile, { network: { egress: [rule] } }, 'network');
    expectRefusal({ ...profile, overridable: ['network'] }, { network: { egress: [rule] } }, 'network');
  });

  it('an open network is refused where the profile denies', () => {
    expectRefusal({ ...profile, overridable: ['network'] }, { network: { default: 'allow' } }, 'network');
  });

  it('a declared secret is not sent to a host of the request’s choosing, even from an open network', () => {
    const egress = [{ host: 'evil.example', credential: 'GITHUB' }];
    expectRefusal({ network: { default: 'allow' }, setup }, { network: { egress } }, 'network');
  });

  it('a secret of the request itself is sent where the profile lets traffic go', () => {
    const request: CreateSandboxInput = {
      setup_metadata: { secret_refs: ['env:NPM'] },
      network: { egress: [{ host: 'registry.example.org', credential: 'NPM' }] },
    };
    const open: Parts = { network, setup: { ...setup, request_secrets: 'any' } };
    expect(resolve(open, request).network.egress[0]?.credential).toBe('NPM');
  });

  it('a credential that is no secret of the recipe is refused', () => {
    const request = { network: { egress: [{ host: 'a.example', credential: 'NOPE' }] } };
    expectRefusal({ overridable: ['network'] }, request, 'network.egress[0].credential', admin);
  });

  it('the network of a request may be widened by an administrator where the profile lists it', () => {
    const wide: CreateSandboxInput = { network: { default: 'allow' } };
    expect(resolve({ overridable: ['network'] }, wide, admin).network.default).toBe('allow');
    expectRefusal({}, wide, 'network', admin);
  });
});

describe('route', () => {
  it('a merged route intersects only, unites ignore, takes the stricter of the rest', () => {
    const profile: Parts = {
      route: {
        strategy: 'prefer-self-hosted',
        only: ['ext.a', 'ext.b'],
        ignore: ['ext.z'],
        constraints: { max_cost_per_hour: 2 },
      },
    };
    const request: CreateSandboxInput = {
      route: {
        strategy: 'lowest-cost',
        only: ['ext.b', 'ext.c'],
        ignore: ['ext.y'],
        order: ['ext.b'],
        allow_fallbacks: false,
        constraints: { max_cost_per_hour: 1 },
      },
    };
    expect(resolve(profile, request).route).toEqual({
      strategy: 'lowest-cost',
      only: ['ext.b'],
      ignore: ['ext.y', 'ext.z'],
      order: ['ext.b'],
      allow_fallbacks: false,
      constraints: { max_cost_per_hour: 1 },
    });
  });

  it('a merged route refuses values outside the profile’s bounds', () => {
    const only: Parts = { route: { only: ['ext.a'] } };
    expectRefusal(only, { route: { only: ['ext.b'] } }, 'route.only');
    expectRefusal(only, { route: { order: ['ext.b'] } }, 'route.order');
    expectRefusal(only, { route: { fallback: ['ext.b'] } }, 'route.fallback');
  });

  it('a merged route keeps a pinned backend pinned', () => {
    const pinned: Parts = { extension: 'ext.a', route: { fallback: ['ext.b'] } };
    expect(resolve(pinned, { route: { strategy: 'lowest-cost' } }).pinnedExtension).toBe('ext.a');
    expect(resolve(pinned, { route: { fallback: [] } }).route.fallback).toEqual([]);
    expectRefusal(pinned, { route: { only: ['ext.c'] } }, 'route.only');
    expectRefusal(pinned, { route: { fallback: ['ext.c'] } }, 'route.fallback');
  });

  it('a merged route stays explicit, and an explicit route names its backends', () => {
    const explicit: Parts = { route: { strategy: 'explicit', order: ['ext.a'] } };
    expectRefusal(explicit, { route: { strategy: 'lowest-cost' } }, 'route.strategy');
    expectRefusal(explicit, { route: { order: ['ext.b'] } }, 'route.order');
    expect(resolve(explicit, { route: { order: [] } }).route.order).toEqual(['ext.a']);
    expectRefusal({}, { route: { strategy: 'explicit' } }, 'route.order');
    expect(resolve({}, { route: { strategy: 'explicit', only: ['ext.a'] } }).route.order).toEqual(['ext.a']);
  });

  it('a merged route knows that a base name stands for its instances', () => {
    const only: Parts = { route: { only: ['ext.e2b'] } };
    expect(resolve(only, { route: { only: ['ext.e2b#eu'] } }).route.only).toEqual(['ext.e2b#eu']);
    const instance: Parts = { route: { only: ['ext.e2b#eu'] } };
    expect(resolve(instance, { route: { only: ['ext.e2b'] } }).route.only).toEqual(['ext.e2b#eu']);
  });

  it('a merged route folds constraints into requirements, the stricter of each', () => {
    const profile: Parts = {
      isolation: { level: 'container' },
      requires: { egress: 'l7', snapshot: 'filesystem', resources: ['cpu'] },
      route: { constraints: { region: 'eu', require_isolation: 'gvisor' } },
    };
    const request: CreateSandboxInput = {
      route: {
        constraints: {
          egress: 'l3',
          snapshot: 'memory',
          fork: true,
          pause: false,
          region: 'eu',
          resources: ['pids', 'cpu'],
        },
      },
    };
    const recipe = resolve(profile, request);
    expect(recipe.requires).toEqual({
      isolation: 'gvisor',
      egress: 'l7',
      snapshot: 'memory',
      fork: true,
      region: 'eu',
      resources: ['cpu', 'pids'],
    });
    expect(recipe.isolation).toBe('gvisor');
    expect(recipe.route.constraints).toBeUndefined();
  });

  it('a merged route refuses a requirement that contradicts the profile’s', () => {
    const profile: Parts = { requires: { region: 'eu' } };
    expectRefusal(profile, { route: { constraints: { region: 'us' } } }, 'route.constraints.region');
    const broken: Parts = { requires: { region: 'eu' }, route: { constraints: { region: 'us' } } };
    expect(refusalOf(broken, {}).code).toBe('SBX_PROFILE_INVALID');
  });
});

describe('secrets', () => {
  const setup: Parts['setup'] = {
    secret_refs: [
      { name: 'TOKEN', provider: 'vault', key: 'kv/token' },
      { name: 'PGPASS', delivery: 'file' },
    ],
  };
  const refs = (request: NonNullable<CreateSandboxInput['setup_metadata']>['secret_refs'], caller = agent) =>
    resolve({ setup }, { setup_metadata: { secret_refs: request } }, caller).secretRefs;
  const declared = profileOf({ setup }).setup.secret_refs;

  it('secrets are the profile’s when the request names them or no secrets', () => {
    expect(refs([])).toEqual(declared);
    expect(refs(['TOKEN', 'vault:kv/token', 'env:PGPASS'])).toEqual(declared);
    expect(refs([{ name: 'PGPASS', delivery: 'file' }, { name: 'PGPASS' }])).toEqual(declared);
  });

  it('secrets are refused when the profile does not declare them', () => {
    for (const ref of ['OTHER', 'env:OTHER', { name: 'OTHER' }, { name: 'TOKEN', key: 'PROD_DB' }]) {
      expectRefusal({ setup }, { setup_metadata: { secret_refs: [ref] } }, 'setup_metadata.secret_refs[0]');
    }
  });

  it('secrets come through the broker when the profile takes any, or an administrator asks', () => {
    const added = { name: 'kv_npm_token', provider: 'vault', key: 'kv/npm-token', delivery: 'broker' };
    const any: Parts = { setup: { request_secrets: 'any' } };
    const request: CreateSandboxInput = { setup_metadata: { secret_refs: ['vault:kv/npm-token'] } };
    expect(resolve(any, request).secretRefs).toEqual([added]);
    expect(refs(['vault:kv/npm-token'], admin)).toEqual([...declared, added]);
    expect(refs(['7UP'], admin).at(-1)).toMatchObject({ name: '_7UP', provider: 'env', key: '7UP' });
  });

  it('secrets keep the delivery that the profile gives a name', () => {
    const other = refs([{ name: 'PGPASS', key: 'PGPASS_TEST' }], admin);
    expect(other[1]).toEqual({ name: 'PGPASS', provider: 'env', key: 'PGPASS_TEST', delivery: 'file' });
  });

  it('secrets are never exposed by a request', () => {
    for (const delivery of ['file', 'env'] as const) {
      const request: CreateSandboxInput = { setup_metadata: { secret_refs: [{ name: 'TOKEN', delivery }] } };
      for (const caller of [agent, admin]) {
        expect(refusalOf({ setup }, request, caller).code).toBe('SBX_SECRET_DELIVERY');
      }
    }
  });

  it('secrets are refused when two of them would share a name', () => {
    const request: CreateSandboxInput = { setup_metadata: { secret_refs: ['vault:a/b', 'vault:a-b'] } };
    expectRefusal({ setup: { request_secrets: 'any' } }, request, 'setup_metadata.secret_refs[1]');
  });
});

describe('elevation', () => {
  it('an elevated request needs an administrator', () => {
    expect(refusalOf({}, { elevated: true }).code).toBe('SBX_ELEVATION_REFUSED');
    expect(refusalOf({}, { inputs: { elevated: 'yes' } }).code).toBe('SBX_ELEVATION_REFUSED');
    expect(resolve({}, { elevated: true }, admin).elevated).toBe(true);
    expect(resolve({}, { inputs: { elevated: 1 } }, admin).elevated).toBe(true);
    expect(resolve({}, { inputs: { elevated: 'false' } }).elevated).toBe(false);
  });
});

describe('recipeFingerprint', () => {
  const print = (profile: Parts, request: CreateSandboxInput = {}) =>
    recipeFingerprint(resolve(profile, request));

  it('recipeFingerprint ignores time, prose and scope', () => {
    const same = print(
      {},
      { ttl: '1h', idle_reap: '5m', scope: 'agent', setup_metadata: { instructions: 'x' } },
    );
    expect(same).toBe(print({}));
  });

  it('recipeFingerprint changes with every field that shapes the sandbox', () => {
    const prints = [
      print({}),
      print({ image: 'debian' }),
      print({ resources: { cpu: 1 } }),
      print({}, { inputs: { branch: 'x' } }),
      print({}, { setup_metadata: { variables: { A: '1' } } }),
      print({}, { route: { constraints: { region: 'eu' } } }),
      print({}, { workspace: { access: 'ro' } }),
    ];
    expect(new Set(prints).size).toBe(prints.length);
  });

  it('recipeFingerprint ignores the order in which a set was written', () => {
    const one = print({}, { route: { only: ['ext.a', 'ext.b'], ignore: ['ext.y', 'ext.z'] } });
    expect(print({}, { route: { ignore: ['ext.z', 'ext.y'], only: ['ext.b', 'ext.a'] } })).toBe(one);
  });
});

describe('scopeKey', () => {
  const key = (scope: 'session' | 'agent' | 'shared', consumer = {}, caller = agent) =>
    scopeKey(scope, { consumer }, caller, 'profile.test');

  it('scopeKey is harness and session, run or job for a session', () => {
    expect(key('session', { harness: 'h' })).toBeNull();
    const keys = [
      key('session', { harness: 'h', session_id: '1' }),
      key('session', { harness: 'h', run_id: '1' }),
      key('session', { harness: 'h', job_id: '1' }),
      key('session', { harness: 'i', session_id: '1' }),
      key('session', { session_id: '1' }),
      key('agent', { harness: 'h', agent_id: '1' }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(key('session', { session_id: '1', run_id: '2' })).toBe(
      key('session', { session_id: '1', run_id: '3' }),
    );
  });

  it('scopeKey is harness and agent, or the key, for an agent', () => {
    expect(key('agent', { agent_id: 'a' })).toBe(key('agent', { agent_id: 'a' }, admin));
    expect(key('agent')).not.toBe(key('agent', {}, admin));
  });

  it('scopeKey is workspace and profile when shared', () => {
    expect(key('shared', { session_id: '1' })).toBe(key('shared'));
    expect(key('shared')).not.toBe(key('shared', {}, { ...agent, workspaceId: 'w2' }));
  });
});

describe('warm', () => {
  it('the warm pool is turned off by the profile, whatever the request says, or by the request alone', () => {
    expect(resolve({ warm: false }, { inputs: { warm: true } }).inputs.warm).toBe(false);
    expect(resolve({}, { inputs: { warm: false } }).inputs.warm).toBe(false);
    expect(resolve({}).inputs.warm).toBeUndefined();
  });

  it('the program is that of the profile; a request can turn it off and name none', () => {
    const program = ['python3', '-c', 'import json'];
    const profile = { warm: { program } };
    expect(resolve(profile).warmProgram).toEqual(program);
    expect(resolve(profile).inputs.warm).toBeUndefined();
    expect(resolve(profile, { inputs: { warm: false } }).inputs.warm).toBe(false);
    expect(resolve({ warm: true })).not.toHaveProperty('warmProgram');
    expect(() => resolve({}, { inputs: { warm: { program } } })).toThrow();
  });
});
