import type { Profile } from '../../contract/profiles/profile.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { ResolvedRecipe } from '../../core/recipe/resolve-recipe.ts';
import { resolveRecipe } from '../../core/recipe/resolve-recipe.ts';
import { requireUsableInputs } from '../../core/routing/usable-inputs.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';

export interface ResolvedRequest extends ResolvedRecipe {
  readonly profile: Profile;
}

/** Returns what a request asks for, with its profile, whose inputs the enabled backends understand. */
export function resolveRequest(
  control: Control,
  caller: Caller,
  request: CreateSandboxRequest,
): ResolvedRequest {
  const { profile } = control.catalogue(caller.workspaceId).get(request.profile, request.profile_version);
  const resolved = resolveRecipe(profile, request, caller);
  const headers = control.extensions.all().map(({ header }) => header);
  requireUsableInputs(headers, resolved.recipe);
  return { ...resolved, profile };
}
