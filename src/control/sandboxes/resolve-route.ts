import type { RoutePlan } from '../../contract/routing/route.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { unstaged } from '../../core/recipe/input-refs.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { pinKept } from '../assets/pin-kept.ts';
import type { Control } from '../control.ts';
import { planRoute } from './plan-route.ts';
import { resolveRequest } from './resolve-request.ts';

/** Plans the route of a create, without creating anything. */
export async function resolveRoute(
  control: Control,
  caller: Caller,
  request: CreateSandboxRequest,
): Promise<RoutePlan> {
  requireScope(caller, 'read');
  const { recipe: resolved, trees } = resolveRequest(control, caller, request);
  const recipe = await pinKept(control, caller, { ...resolved, trees: unstaged(trees) });
  return control.store.read('route', (tx) =>
    planRoute(tx, control, { workspaceId: caller.workspaceId, recipe, seed: 'dry-run' }),
  );
}
