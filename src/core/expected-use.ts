import type { UsageExpectation } from './pricing.ts';
import type { Recipe } from './recipe.ts';

/** An agent's sandbox mostly waits for its agent. */
const USUAL_CPU_UTILISATION = 0.25;

/** How such a sandbox will be used: what the request says, and a guess for the rest. */
export function expectedUse(recipe: Pick<Recipe, 'route' | 'ttlSeconds'>): UsageExpectation {
  const { expect } = recipe.route;
  return {
    seconds: Math.min(expect?.duration ?? recipe.ttlSeconds, recipe.ttlSeconds),
    cpuUtilisation: expect?.cpu_utilisation ?? USUAL_CPU_UTILISATION,
    memoryUtilisation: 1,
  };
}
