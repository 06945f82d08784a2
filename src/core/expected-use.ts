import type { ExpectedUse as ExpectedUseDocument } from '../contract/route.ts';
import type { LearnedUse } from './learned-use.ts';
import type { UsageExpectation } from './pricing.ts';
import type { Recipe } from './recipe.ts';

/** An agent's sandbox mostly waits for its agent. */
const USUAL_CPU_UTILISATION = 0.25;

/** With where each figure comes from: a decision keeps it. */
export interface ExpectedUse extends UsageExpectation {
  readonly evidence: Pick<ExpectedUseDocument, 'seconds_from' | 'cpu_from' | 'samples'>;
}

/** How such a sandbox will be used: what the request says, what earlier ones did, and a guess for the rest. */
export function expectedUse(
  recipe: Pick<Recipe, 'route' | 'ttlSeconds'>,
  learned: LearnedUse | null = null,
): ExpectedUse {
  const { duration, cpu_utilisation: cpu } = recipe.route.expect ?? {};
  return {
    seconds: Math.min(duration ?? learned?.seconds ?? recipe.ttlSeconds, recipe.ttlSeconds),
    cpuUtilisation: cpu ?? USUAL_CPU_UTILISATION,
    memoryUtilisation: 1,
    evidence: {
      seconds_from: duration !== undefined ? 'request' : learned ? 'learned' : 'ttl',
      cpu_from: cpu !== undefined ? 'request' : 'assumed',
      samples: learned?.samples ?? 0,
    },
  };
}
