import { SandboxerError } from '../contract/errors.ts';
import type { ProfileIssue } from '../contract/profile.ts';
import { CreateSandboxRequest } from '../contract/sandbox.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import type { CatalogueProfile } from '../core/catalogue.ts';
import { resolveRecipe } from '../core/resolve-recipe.ts';
import type { ControlDeps } from './deps.ts';
import { planRoute, requireRoute } from './plan-route.ts';

export interface ProfileView {
  readonly entry: CatalogueProfile;
  /** Why a create of it would be refused as things are now; `null` when it would not. */
  readonly unavailableReason: string | null;
}

/** Runs the router dry: a profile that nobody can fulfil says so before it is asked for. */
function viewOf(deps: ControlDeps, caller: Caller, entry: CatalogueProfile): ProfileView {
  const { profile } = entry;
  try {
    const request = CreateSandboxRequest.parse({ profile: profile.id, profile_version: profile.version });
    requireRoute(planRoute(deps, resolveRecipe(profile, request, caller).recipe, 'dry-run', null));
    return { entry, unavailableReason: null };
  } catch (error) {
    if (error instanceof SandboxerError) return { entry, unavailableReason: error.detail };
    throw error;
  }
}

export function listProfiles(
  deps: ControlDeps,
  caller: Caller,
): { profiles: readonly ProfileView[]; issues: readonly ProfileIssue[] } {
  requireScope(caller, 'read');
  const catalogue = deps.catalogue(caller.workspaceId);
  return { profiles: catalogue.list().map((entry) => viewOf(deps, caller, entry)), issues: catalogue.issues };
}

export function getProfile(deps: ControlDeps, caller: Caller, ref: string): ProfileView {
  requireScope(caller, 'read');
  return viewOf(deps, caller, deps.catalogue(caller.workspaceId).get(ref));
}
