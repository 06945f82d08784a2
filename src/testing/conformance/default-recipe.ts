import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import { IsolationLevel } from '../../contract/extensions/capability.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';

/** Returns the smallest recipe that a backend with this vector must be able to build. */
export function defaultRecipe(vector: CapabilityVector): Recipe {
  return {
    profileId: 'profile.stub-conformance',
    profileVersion: '1.0.0',
    pinnedExtension: null,
    image: 'host',
    isolation: IsolationLevel.options.find((level) => vector.isolation.includes(level)) ?? 'none',
    persistence: vector.persistence[0] ?? 'ephemeral',
    network: { default: vector.deny_all ? 'deny' : 'allow', egress: [] },
    workspace: { mode: 'remote-canonical', access: 'rw' },
    resources: { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null },
    variables: {},
    setupRun: [],
    instructions: '',
    instructionsRef: null,
    secretRefs: [],
    inputs: {},
    trees: [],
    mounts: [],
    elevated: false,
    scope: 'session',
    ttlSeconds: 600,
    maxTtlSeconds: 3600,
    idleReapSeconds: null,
    requires: {},
    route: {},
    placement: { prefer: [], fallback: [] },
    reachability: { tunnel: null, identity: null },
  };
}
