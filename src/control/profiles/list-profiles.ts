import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Profile, ProfileIssue } from '../../contract/profiles/profile.ts';
import { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { CatalogueProfile } from '../../core/ports/catalogue.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { resolveRecipe } from '../../core/recipe/resolve-recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { planRoute, requireRoute } from '../sandboxes/plan-route.ts';

export interface ProfileView {
  readonly entry: CatalogueProfile;
  /** Why a create of it would be refused as things are now; `null` when it would not. */
  readonly unavailableReason: string | null;
}

/** Runs the router dry, to say in advance why no backend can fulfil a profile. */
export async function unavailableReason(
  tx: Tx,
  deps: ControlPorts,
  caller: Caller,
  profile: Profile,
): Promise<string | null> {
  try {
    const request = CreateSandboxRequest.parse({ profile: profile.id, profile_version: profile.version });
    const { recipe } = resolveRecipe(profile, request, caller);
    requireRoute(await planRoute(tx, deps, { workspaceId: caller.workspaceId, recipe, seed: 'dry-run' }));
    return null;
  } catch (error) {
    if (error instanceof SandboxerError) return error.detail;
    throw error;
  }
}

async function viewOf(
  tx: Tx,
  deps: ControlPorts,
  caller: Caller,
  entry: CatalogueProfile,
): Promise<ProfileView> {
  return { entry, unavailableReason: await unavailableReason(tx, deps, caller, entry.profile) };
}

export async function listProfiles(
  control: Control,
  caller: Caller,
): Promise<{ profiles: readonly ProfileView[]; issues: readonly ProfileIssue[] }> {
  requireScope(caller, 'read');
  const catalogue = control.catalogue(caller.workspaceId);
  const profiles = await control.store.read('profiles', async (tx) => {
    const views: ProfileView[] = [];
    for (const entry of catalogue.list()) views.push(await viewOf(tx, control, caller, entry));
    return views;
  });
  return { profiles, issues: catalogue.issues };
}

export async function getProfile(
  control: Control,
  caller: Caller,
  { ref }: { readonly ref: string },
): Promise<ProfileView> {
  requireScope(caller, 'read');
  const entry = control.catalogue(caller.workspaceId).get(ref);
  return control.store.read('profiles', (tx) => viewOf(tx, control, caller, entry));
}
