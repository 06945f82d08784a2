import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Requirements } from '../../contract/extensions/capability.ts';
import type { Overridable, Profile, Resources, Scope } from '../../contract/profiles/profile.ts';
import { WorkspaceAccess } from '../../contract/profiles/profile.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { formatDuration } from '../../contract/values/duration.ts';
import type { Caller } from '../tenancy/caller.ts';
import { requireConsumerActor } from '../tenancy/consumer-actor.ts';
import { canonicalJson, digestOf } from './canonical-json.ts';
import type { RequestedTree } from './input-refs.ts';
import { requestedInputs } from './input-refs.ts';
import type { MergedSecretRefs } from './merge-secret-refs.ts';
import { mergeSecretRefs } from './merge-secret-refs.ts';
import { wideningOf } from './narrow-network.ts';
import { narrowRoute, withoutPreferences } from './narrow-route.ts';
import type { Recipe } from './recipe.ts';
import { requirementsOf, stricterIsolation, stricterRequirements } from './stricter-requirements.ts';

export interface ResolvedRecipe {
  readonly recipe: Recipe;
  readonly ttlSeconds: number;
  /** The trees that are still to be staged: the recipe's own `trees` are the result. */
  readonly trees: readonly RequestedTree[];
}

/**
 * Profile and request, merged. A request may always ask for less than the profile gives; what is different or more
 * it may ask for only where the profile says `overridable`. Nothing is clamped in silence: what cannot be had is
 * refused, with the field and the remedy.
 */
export function resolveRecipe(
  profile: Profile,
  request: CreateSandboxRequest,
  caller: Caller,
): ResolvedRecipe {
  requireConsumerActor(caller, request.consumer);
  const ttlSeconds = resolveTtl(profile, request);
  const setup = request.setup_metadata ?? {};
  const secrets = mergeSecretRefs(profile, setup.secret_refs ?? [], caller);
  const requires = resolveRequirements(profile, request);
  const given = requestedInputs(request, caller);
  const recipe: Recipe = {
    profileId: profile.id,
    profileVersion: profile.version,
    pinnedExtension: profile.extension,
    image: resolveImage(profile, request),
    ...resolveVolumes(profile, request),
    isolation: stricterIsolation(profile.isolation.level, requires.isolation),
    ...(profile.isolation.no_new_privs ? { noNewPrivs: true } : {}),
    ...(typeof profile.warm === 'object' ? { warmProgram: profile.warm.program } : {}),
    persistence: profile.persistence,
    network: resolveNetwork(profile, request, caller, secrets),
    workspace: resolveWorkspace(profile, request),
    resources: resolveResources(profile, request),
    variables: {
      ...profile.setup.variables,
      ...setup.variables,
      ...request.env,
    },
    setupRun: profile.setup.run,
    instructions: [profile.setup.instructions, setup.instructions].filter(Boolean).join('\n\n'),
    instructionsRef: setup.instructions_ref ?? null,
    secretRefs: secrets.refs,
    inputs: profile.warm === false ? { ...given.plain, warm: false } : given.plain,
    trees: [],
    mounts: given.mounts,
    elevated: resolveElevated(request, given.elevated, caller),
    scope: request.scope ?? profile.scope_default,
    ttlSeconds,
    maxTtlSeconds: profile.ttl.max,
    idleReapSeconds: resolveIdleReap(profile, request),
    requires,
    route: narrowRoute(profile, request.route),
    placement: profile.placement,
    reachability: profile.reachability,
  };
  requireWorkspace(recipe, given.trees);
  return { recipe, ttlSeconds, trees: given.trees };
}

/** Returns a digest of what is built: two recipes with one fingerprint give interchangeable sandboxes. */
export function recipeFingerprint(recipe: Recipe): string {
  const {
    ttlSeconds: _ttl,
    maxTtlSeconds: _maxTtl,
    idleReapSeconds: _idle,
    instructions: _prose,
    instructionsRef: _proseRef,
    scope: _scope,
    ...shape
  } = recipe;
  const { only, ...route } = withoutPreferences(shape.route);
  return digestOf({ ...shape, route: { ...route, ...(only && { only: [...only].sort() }) } });
}

/** Returns the key by which requests share a sandbox (SPEC §4); `null` when the request names nothing to share it by. */
export function scopeKey(
  scope: Scope,
  request: Pick<CreateSandboxRequest, 'consumer'>,
  caller: Pick<Caller, 'workspaceId' | 'keyId'>,
  profileId: string,
): string | null {
  const { harness = null, session_id, run_id, job_id, agent_id } = request.consumer;
  switch (scope) {
    case 'session': {
      const named = Object.entries({ session_id, run_id, job_id }).find(([, id]) => id !== undefined);
      return named ? canonicalJson(['session', harness, ...named]) : null;
    }
    case 'agent':
      return agent_id === undefined
        ? canonicalJson(['agent', harness, 'key', caller.keyId])
        : canonicalJson(['agent', harness, 'agent_id', agent_id]);
    case 'shared':
      return canonicalJson(['shared', caller.workspaceId, profileId]);
  }
}

/** A sandbox without a workspace has no place for files. */
function requireWorkspace({ workspace, profileId }: Recipe, trees: readonly RequestedTree[]): void {
  const [first] = trees;
  if (workspace.access !== 'none' || first === undefined) return;
  throw new SandboxerError('SBX_INVALID_REQUEST', `${profileId} has no workspace to put files in.`, {
    field: first.field,
    creation: 'not_created',
    remedy: 'Ask for the workspace access "ro" or "rw", or leave the files out.',
  });
}

function resolveTtl(profile: Profile, request: CreateSandboxRequest): number {
  const ttl = request.ttl ?? profile.ttl.default;
  if (ttl <= profile.ttl.max) return ttl;
  const longest = formatDuration(profile.ttl.max);
  throw new SandboxerError(
    'SBX_INVALID_REQUEST',
    `A ttl of ${formatDuration(ttl)} is longer than ${profile.id} allows.`,
    { field: 'ttl', remedy: `Ask for at most ${longest}.` },
  );
}

function resolveElevated(request: CreateSandboxRequest, byInput: boolean, caller: Caller): boolean {
  const elevated = request.elevated || byInput;
  if (elevated && caller.actor !== 'adm') {
    throw new SandboxerError('SBX_ELEVATION_REFUSED', 'Elevated access was asked for without an "adm" key.', {
      field: request.elevated ? 'elevated' : 'inputs.elevated',
    });
  }
  return elevated;
}

function resolveImage(profile: Profile, request: CreateSandboxRequest): string {
  if (request.image === undefined || request.image === profile.image) return profile.image;
  allowOverride(profile, 'image', 'image', `Leave it out to get ${profile.image}.`);
  return request.image;
}

/** A request may bring its workspace's own volumes; the profile's keep their places. */
function resolveVolumes(profile: Profile, request: CreateSandboxRequest): Pick<Recipe, 'volumes'> {
  const mounts = [...(profile.volumes ?? []), ...(request.volumes ?? [])];
  if (mounts.length === 0) return {};
  for (const [index, { path }] of mounts.entries()) {
    const other = mounts.find(
      (mount, at) => at !== index && (mount.path === path || mount.path.startsWith(`${path}/`)),
    );
    if (other === undefined) continue;
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `The volumes at ${path} and ${other.path} hide each other.`,
      {
        field: 'volumes',
        remedy: 'Give every volume a place of its own.',
      },
    );
  }
  return { volumes: mounts.map((mount) => ({ ...mount, volumeId: null, extensionId: null })) };
}

function resolveWorkspace(profile: Profile, request: CreateSandboxRequest): Profile['workspace'] {
  const { mode = profile.workspace.mode, access = profile.workspace.access } = request.workspace ?? {};
  const weakestFirst: readonly string[] = WorkspaceAccess.options;
  if (mode !== profile.workspace.mode) {
    allowOverride(profile, 'workspace', 'workspace.mode', `Use the mode "${profile.workspace.mode}".`);
  }
  if (weakestFirst.indexOf(access) > weakestFirst.indexOf(profile.workspace.access)) {
    const most = profile.workspace.access;
    allowOverride(profile, 'workspace', 'workspace.access', `Ask for at most the access "${most}".`);
  }
  return { mode, access };
}

/** `null` in a request is the same as leaving the limit out. A limit the profile leaves open has no "less". */
function resolveResources(profile: Profile, request: CreateSandboxRequest): Resources {
  const resources: Record<string, number | string | null> = { ...profile.resources };
  for (const [name, wanted] of Object.entries(request.resources ?? {})) {
    const given = resources[name] ?? null;
    if (wanted === null || wanted === undefined || wanted === given) continue;
    const isLess = typeof wanted === 'number' && typeof given === 'number' && wanted < given;
    if (!isLess) {
      const most = given === null ? 'Leave it out.' : `Ask for at most ${given}.`;
      allowOverride(profile, 'resources', `resources.${name}`, most);
    }
    resources[name] = wanted;
  }
  return resources as Resources;
}

/**
 * Returns the network of the recipe. Only an administrator reaches further than the profile, and only where the profile lets its
 * network be changed.
 */
function resolveNetwork(
  profile: Profile,
  request: CreateSandboxRequest,
  caller: Caller,
  secrets: MergedSecretRefs,
): Profile['network'] {
  if (request.network === undefined) return profile.network;
  const known = new Set(secrets.refs.map(({ name }) => name));
  for (const [index, { credential }] of request.network.egress.entries()) {
    if (credential === undefined || known.has(credential)) continue;
    throw new SandboxerError('SBX_INVALID_REQUEST', `There is no secret ${credential} to send.`, {
      field: `network.egress[${index}].credential`,
      remedy: 'Name a secret of the profile, or one of setup_metadata.secret_refs.',
    });
  }
  const widening = wideningOf(profile.network, request.network, secrets.own);
  if (widening === null) return request.network;
  if (caller.actor !== 'adm') {
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `The network is wider than ${profile.id} allows: ${widening}.`,
      {
        field: 'network',
        remedy: 'Ask for no more than the profile allows, or use an "adm" key.',
      },
    );
  }
  allowOverride(profile, 'network', 'network', 'Ask for no more than the profile allows.');
  return request.network;
}

function resolveIdleReap(profile: Profile, request: CreateSandboxRequest): number | null {
  const given = profile.ttl.idle_reap;
  const wanted = request.idle_reap;
  if (wanted === undefined || wanted === given) return given;
  const isSooner = wanted !== null && (given === null || wanted < given);
  if (!isSooner) {
    const most = given === null ? 'Leave it out.' : `Ask for at most ${formatDuration(given)}.`;
    allowOverride(profile, 'idle_reap', 'idle_reap', most);
  }
  return wanted;
}

function resolveRequirements(profile: Profile, request: CreateSandboxRequest): Requirements {
  const ofProfile = profileRequirements(profile, (field, one, other) => {
    throw new SandboxerError(
      'SBX_PROFILE_INVALID',
      `${profile.id} requires ${field} ${one} and ${other} at once.`,
      {
        field: `route.constraints.${field}`,
      },
    );
  });
  const refuse = (field: string, ours: string, theirs: string): never => {
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `${profile.id} requires ${field} ${ours}, not ${theirs}.`,
      {
        field: `route.constraints.${field}`,
        remedy: `Leave it out, or choose a profile that does not require ${field} ${ours}.`,
      },
    );
  };
  return stricterRequirements(ofProfile, requirementsOf(request.route?.constraints, refuse), refuse);
}

/** `requires` and `route.constraints` of a profile as one. */
export function profileRequirements(
  profile: Pick<Profile, 'requires' | 'route'>,
  onConflict: (field: string, one: string, other: string) => never,
): Requirements {
  const constraints = requirementsOf(profile.route.constraints, onConflict);
  return stricterRequirements(profile.requires, constraints, onConflict);
}

type OverridableField = (typeof Overridable)['options'][number];

function allowOverride(profile: Profile, what: OverridableField, field: string, instead: string): void {
  if (profile.overridable.includes(what)) return;
  throw new SandboxerError('SBX_INVALID_REQUEST', `${profile.id} does not let a request change ${field}.`, {
    field,
    remedy: `${instead} Or use a profile with "${what}" in its overridable list.`,
  });
}
