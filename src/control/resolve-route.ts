import type { RoutePlan } from '../contract/route.ts';
import type { CreateSandboxRequest } from '../contract/sandbox.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { resolveRecipe } from '../core/resolve-recipe.ts';
import type { ControlDeps } from './deps.ts';
import { planRoute } from './plan-route.ts';

/** Where a create would go, without creating anything. */
export function resolveRoute(deps: ControlDeps, caller: Caller, request: CreateSandboxRequest): RoutePlan {
  requireScope(caller, 'read');
  const { profile } = deps.catalogue(caller.workspaceId).get(request.profile, request.profile_version);
  const { recipe } = resolveRecipe(profile, request, caller);
  return planRoute(deps, recipe, 'dry-run', null);
}
