import type { Extension } from './extension.ts';
import type { Recipe } from './recipe.ts';

/** The machine that sand-boxer itself runs on: the only host until others are registered. */
const LOCAL_HOST = 'local';

export interface PlacementDecision {
  readonly hostId: string | null;
  readonly reason: string;
}

/** Where a self-hosted sandbox goes. A SaaS backend has no host of ours. */
export function place(_recipe: Recipe, extension: Extension['header']): PlacementDecision {
  if (extension.capabilities.hosting === 'saas') return { hostId: null, reason: 'the vendor places it' };
  return { hostId: LOCAL_HOST, reason: 'the only registered host' };
}
