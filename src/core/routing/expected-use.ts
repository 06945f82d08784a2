import type { ExpectedUse as ExpectedUseDocument } from '../../contract/routing/route.ts';
import type { UsageExpectation } from '../credits/pricing.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { LearnedUse } from './learned-use.ts';

/** An agent's sandbox mostly waits for its agent. */
const USUAL_CPU_UTILISATION = 0.25;
const USUAL_MEMORY_UTILISATION = 1;

/** The expected use with the source of each figure: a decision stores both. */
export interface ExpectedUse extends UsageExpectation {
  readonly evidence: Omit<ExpectedUseDocument, 'seconds' | 'cpu_utilisation' | 'memory_utilisation'>;
}

/** Estimates the use of a sandbox: from the request, from earlier sandboxes, and a guess for the rest. */
export function expectedUse(
  recipe: Pick<Recipe, 'route' | 'ttlSeconds'>,
  learned: LearnedUse | null = null,
): ExpectedUse {
  const { duration, cpu_utilisation: said } = recipe.route.expect ?? {};
  const { cpu = null, memory = null } = learned ?? {};
  return {
    seconds: Math.min(duration ?? learned?.seconds ?? recipe.ttlSeconds, recipe.ttlSeconds),
    cpuUtilisation: said ?? cpu?.share ?? USUAL_CPU_UTILISATION,
    memoryUtilisation: memory?.share ?? USUAL_MEMORY_UTILISATION,
    evidence: {
      seconds_from: duration !== undefined ? 'request' : learned ? 'learned' : 'ttl',
      cpu_from: said !== undefined ? 'request' : cpu ? 'learned' : 'assumed',
      memory_from: memory ? 'learned' : 'assumed',
      samples: learned?.samples ?? 0,
      cpu_samples: cpu?.samples ?? 0,
    },
  };
}
