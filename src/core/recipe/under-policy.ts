import { SandboxerError } from '../../contract/errors/errors.ts';
import type { RouteCeiling } from '../../contract/routing/route.ts';
import { lowerCeilings } from './narrow-route.ts';
import type { Recipe } from './recipe.ts';
import { requirementsOf, stricterIsolation, stricterRequirements } from './stricter-requirements.ts';

/**
 * Returns the recipe as the workspace lets it be routed: requirements add up, the lower price ceiling holds. The policy is a
 * ceiling: no request can reach above it.
 */
export function underPolicy(recipe: Recipe, policy: RouteCeiling | null): Recipe {
  if (policy === null) return recipe;
  const refuse = (field: string, theirs: string, ours: string): never => {
    throw new SandboxerError(
      'SBX_NO_ROUTE',
      `The workspace requires ${field} ${ours}, and this request ${theirs}.`,
      {
        field: `route.constraints.${field}`,
        creation: 'not_created',
        remedy: `Ask for ${field} ${ours}, or have the workspace's policy changed.`,
      },
    );
  };
  const demanded = requirementsOf(policy.constraints, refuse);
  const requires = stricterRequirements(recipe.requires, demanded, refuse);
  const constraints = lowerCeilings(recipe.route.constraints, policy.constraints);
  const ignore = [...new Set([...(recipe.route.ignore ?? []), ...(policy.ignore ?? [])])].sort();
  return {
    ...recipe,
    isolation: stricterIsolation(recipe.isolation, requires.isolation),
    requires,
    route: {
      ...recipe.route,
      ...(ignore.length > 0 && { ignore }),
      ...(constraints && { constraints }),
      ...(policy.hedge === 'off' && { hedge: 'off' as const }),
    },
  };
}
