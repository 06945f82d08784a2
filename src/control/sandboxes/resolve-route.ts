import type { RoutePlan } from '../../contract/routing/route.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { unstaged } from '../../core/recipe/input-refs.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { pinKept } from '../assets/pin-kept.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { planRoute } from './plan-route.ts';
import { resolveRequest } from './resolve-request.ts';

/** Where a create would go, without creating anything. */
export async function resolveRoute(
  deps: ControlPorts,
  caller: Caller,
  request: CreateSandboxRequest,
): Promise<RoutePlan> {
  requireScope(caller, 'read');
  const { recipe: resolved, trees } = resolveRequest(deps, caller, request);
  const recipe = await pinKept(deps, caller, { ...resolved, trees: unstaged(trees) });
  return deps.store.read('route', (tx) =>
    planRoute(tx, deps, caller.workspaceId, recipe, { seed: 'dry-run' }),
  );
}
