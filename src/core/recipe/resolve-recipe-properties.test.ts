import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { EgressEnforcement, IsolationLevel, SnapshotKind } from '../../contract/extensions/capability.ts';
import type { ProfileInput } from '../../contract/profiles/profile.ts';
import { Profile } from '../../contract/profiles/profile.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { Recipe } from './recipe.ts';
import { resolveRecipe } from './resolve-recipe.ts';

const agent: Caller = {
  actor: 'agt',
  workspaceId: 'w1',
  orgId: 'o1',
  keyId: 'key_aaaaaaaaaa',
  scopes: new Set(),
  local: false,
};

type Parts = Omit<ProfileInput, 'id' | 'version'>;

const profileOf = (parts: Parts) => Profile.parse({ id: 'profile.test', version: '1.0.0', ...parts });
const requestOf = (parts: CreateSandboxInput) => CreateSandboxRequest.parse(parts);

describe('recipes of every profile and request', () => {
  const extensions = ['ext.a', 'ext.a#1', 'ext.b', 'ext.c'];
  const ids = fc.subarray(extensions);
  const constraints = fc.record(
    {
      isolation: fc.constantFrom(...IsolationLevel.options),
      require_isolation: fc.constantFrom(...IsolationLevel.options),
      egress: fc.constantFrom(...EgressEnforcement.options),
      snapshot: fc.constantFrom(...SnapshotKind.options),
      region: fc.constantFrom('eu', 'us'),
      fork: fc.boolean(),
      max_cost_per_hour: fc.option(fc.nat(5)),
    },
    { requiredKeys: [] },
  );
  const route = fc.record(
    {
      strategy: fc.constantFrom('prefer-self-hosted' as const, 'lowest-cost' as const, 'explicit' as const),
      order: ids,
      only: ids,
      ignore: ids,
      fallback: ids,
      allow_fallbacks: fc.boolean(),
      constraints,
    },
    { requiredKeys: [] },
  );
  const network = fc.record({
    default: fc.constantFrom('deny' as const, 'allow' as const),
    egress: fc.array(
      fc.record(
        {
          host: fc.constantFrom('*.x.org', 'a.x.org', 'b.x.org', 'x.org'),
          port: fc.constantFrom(80, 443),
          methods: fc.subarray(['GET', 'POST'], { minLength: 1 }),
          credential: fc.constantFrom('S', 'T'),
        },
        { requiredKeys: ['host'] },
      ),
      { maxLength: 3 },
    ),
  });
  const resources = fc.record(
    { cpu: fc.option(fc.integer({ min: 1, max: 4 })), memory_mb: fc.option(fc.integer({ min: 6, max: 9 })) },
    { requiredKeys: [] },
  );
  const workspace = fc.record(
    {
      mode: fc.constantFrom('mirror' as const, 'remote' as const),
      access: fc.constantFrom('none' as const, 'ro' as const, 'rw' as const),
    },
    { requiredKeys: [] },
  );
  const secrets = { secret_refs: [{ name: 'S' }, { name: 'T' }] };
  const profiles = fc
    .record(
      {
        extension: fc.constantFrom(null, 'ext.a', 'ext.b'),
        isolation: fc.record({ level: fc.constantFrom(...IsolationLevel.options) }),
        route,
        network,
        resources,
        workspace,
        overridable: fc.subarray(['image', 'network', 'workspace'] as const),
      },
      { requiredKeys: [] },
    )
    .map((parts) => profileOf({ ...parts, setup: secrets } as Parts));
  const ttl = fc.integer({ min: 1, max: 100_000 });
  /** Each request has one kind of wish, or most would be refused for another reason than the one looked at. */
  const requests = {
    route: fc.record({ route }),
    network: fc.record({ network }),
    size: fc.record({ resources, ttl }, { requiredKeys: [] }),
    any: fc.record({ route, network, resources, workspace, ttl }, { requiredKeys: [] }),
  };

  /** Calls `check` for the pairs that are accepted; a refusal is always one of ours. */
  function forAccepted(
    kind: keyof typeof requests,
    check: (profile: Profile, request: CreateSandboxRequest, recipe: Recipe) => void,
  ) {
    let accepted = 0;
    fc.assert(
      fc.property(profiles, requests[kind], (profile, parts) => {
        const request = requestOf(parts as CreateSandboxInput);
        let recipe: Recipe;
        try {
          recipe = resolveRecipe(profile, request, agent).recipe;
        } catch (error) {
          expect(error).toBeInstanceOf(SandboxerError);
          return;
        }
        accepted += 1;
        check(profile, request, recipe);
      }),
      { numRuns: 1000 },
    );
    expect(accepted).toBeGreaterThan(20);
  }

  /** The backends that a route leaves, as the router reads it. */
  function allowedBy(pinned: string | null, policy: Recipe['route']): string[] {
    const covers = (list: readonly string[], id: string) =>
      list.includes(id) || list.includes(id.slice(0, 5));
    const { order = [], only = [], ignore = [], fallback = [], strategy } = policy;
    const named = order.length > 0 ? order : only;
    return extensions
      .filter((id) => pinned === null || covers([pinned, ...fallback], id))
      .filter((id) => pinned !== null || strategy !== 'explicit' || covers([...named, ...fallback], id))
      .filter((id) => only.length === 0 || covers(only, id))
      .filter((id) => !covers(ignore, id));
  }

  it('isolation and requirements never weaken', () => {
    forAccepted('route', (profile, request, recipe) => {
      const rank = (level: IsolationLevel | undefined) => (level ? IsolationLevel.options.indexOf(level) : 0);
      const least = [
        profile.isolation.level,
        ...[profile.route.constraints, request.route?.constraints].flatMap((demand) => [
          demand?.isolation,
          demand?.require_isolation,
        ]),
      ];
      expect(rank(recipe.isolation)).toBe(Math.max(...least.map(rank)));
      if (profile.route.constraints?.region) {
        expect(recipe.requires.region).toBe(profile.route.constraints.region);
      }
    });
  });

  it('the route never widens', () => {
    forAccepted('route', (profile, _request, recipe) => {
      const before = allowedBy(profile.extension, profile.route);
      const after = allowedBy(recipe.pinnedExtension, recipe.route);
      expect(before).toEqual(expect.arrayContaining(after));
      const ceiling = profile.route.constraints?.max_cost_per_hour;
      if (typeof ceiling === 'number') {
        expect(recipe.route.constraints?.max_cost_per_hour).toBeLessThanOrEqual(ceiling);
      }
    });
  });

  it('the network never widens', () => {
    const hosts = ['a.x.org', 'b.x.org', 'c.x.org', 'x.org', 'a.b.x.org'];
    const probes = hosts.flatMap((host) =>
      [80, 443].flatMap((port) => ['GET', 'POST', 'PUT'].map((method) => ({ host, port, method }))),
    );
    /** The access that a policy gives a probe: `open`, or the credentials that it may carry. */
    const reach = (policy: Recipe['network'], { host, port, method }: (typeof probes)[number]) => {
      const rules = policy.egress.filter(
        (rule) =>
          rule.port === port &&
          (rule.host === host || (rule.host === '*.x.org' && /^[^.]+\.x\.org$/.test(host))) &&
          (rule.methods === undefined || rule.methods.includes(method)),
      );
      const credentials = rules.flatMap(({ credential }) => (credential ? [credential] : []));
      return [...(policy.default === 'allow' || rules.length > 0 ? ['open'] : []), ...credentials];
    };
    forAccepted('network', (profile, _request, recipe) => {
      for (const probe of probes) {
        expect(reach(profile.network, probe)).toEqual(expect.arrayContaining(reach(recipe.network, probe)));
      }
    });
  });

  it('resources and lifetime of a recipe never exceed the profile’s', () => {
    forAccepted('size', (profile, _request, recipe) => {
      for (const name of ['cpu', 'memory_mb'] as const) {
        const most = profile.resources[name];
        if (most === null) expect(recipe.resources[name]).toBeNull();
        else expect(recipe.resources[name]).toBeLessThanOrEqual(most);
      }
      expect(recipe.ttlSeconds).toBeLessThanOrEqual(profile.ttl.max);
    });
  });

  it('a request for the granted values changes nothing', () => {
    forAccepted('any', (profile, request, recipe) => {
      const allowsNothing = allowedBy(profile.extension, profile.route).length === 0;
      if (allowsNothing) return;
      const again: CreateSandboxRequest = {
        ...request,
        ttl: recipe.ttlSeconds,
        image: recipe.image,
        network: recipe.network,
        workspace: recipe.workspace,
        resources: recipe.resources,
        idle_reap: recipe.idleReapSeconds,
        route: { ...recipe.route, constraints: { ...recipe.route.constraints, ...recipe.requires } },
      };
      expect(resolveRecipe(profile, again, agent).recipe).toEqual(recipe);
    });
  });
});
