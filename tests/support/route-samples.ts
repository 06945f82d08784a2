/** What tests and benchmarks of the router decide about. */
import { CapabilityVector } from '../../src/contract/extensions/capability.ts';
import type { ProfileInput } from '../../src/contract/profiles/profile.ts';
import { Profile } from '../../src/contract/profiles/profile.ts';
import { CreateSandboxRequest } from '../../src/contract/sandboxes/sandbox.ts';
import type { ExtensionHeader } from '../../src/core/ports/extension.ts';
import type { Recipe } from '../../src/core/recipe/recipe.ts';
import { resolveRecipe } from '../../src/core/recipe/resolve-recipe.ts';
import { expectedUse } from '../../src/core/routing/expected-use.ts';
import type { RouteInput } from '../../src/core/routing/routing.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';

const CALLER: Caller = {
  actor: 'adm',
  workspaceId: 'w',
  orgId: 'o',
  keyId: null,
  scopes: new Set(),
  local: true,
};

/** Of a backend that can do nearly everything. */
export const ABLE: CapabilityVector = CapabilityVector.parse({
  isolation: ['container', 'gvisor'],
  egress: 'l7',
  deny_all: true,
  open_network: true,
  credentials: ['broker', 'file', 'env'],
  dead_man: 'extendable',
  snapshot: 'filesystem',
  snapshot_destructive: false,
  fork: true,
  pause: 'frozen',
  persistence: ['ephemeral', 'persistent', 'checkpoint'],
  exec: true,
  pty: true,
  background: true,
  files: true,
  watch: true,
  ports: true,
  ssh: true,
  resources: ['cpu', 'memory_mb', 'disk_mb', 'pids', 'open_files'],
  images: ['host', 'imported'],
  regions: ['eu'],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'metered',
  latency_class: 'fast',
  hosting: 'saas',
  host_root: false,
  elevated: false,
  demo: false,
});

export function sampleHeader(id: string, over: Partial<ExtensionHeader> = {}): ExtensionHeader {
  return {
    id,
    title: id,
    handleVersion: 1,
    capabilities: ABLE,
    price: null,
    provisionTimeoutSeconds: 60,
    ...over,
  };
}

export function sampleRecipe(profile: Partial<ProfileInput> = {}): Recipe {
  const parsed = Profile.parse({
    id: 'profile.test',
    version: '1.0.0',
    ttl: { default: '1h', max: '2h' },
    ...profile,
  });
  return resolveRecipe(parsed, CreateSandboxRequest.parse({ profile: 'profile.test' }), CALLER).recipe;
}

export function sampleRouteInput(
  profile: Partial<ProfileInput>,
  extensions: readonly ExtensionHeader[],
  changes: Partial<RouteInput> = {},
): RouteInput {
  const recipe = sampleRecipe(profile);
  return {
    recipe,
    extensions,
    catalogueVersion: 'c1',
    standing: {},
    healthAt: 0,
    allowed: null,
    boundTo: null,
    quoted: null,
    expected: expectedUse(recipe),
    seed: 's',
    ...changes,
  };
}
