import type { Exclusion } from '../../contract/routing/route.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { misfits } from './fit.ts';

/** Returns the needs of a recipe that a backend does not offer, with a remedy where the backend knows one. */
export function headerMisfits({ capabilities, remedies = {} }: ExtensionHeader, recipe: Recipe): Exclusion[] {
  return misfits(recipe, capabilities).map((misfit) => {
    const remedy = misfit.code === 'isolation' ? remedies[recipe.isolation] : undefined;
    return remedy === undefined ? misfit : { ...misfit, detail: `${misfit.detail} (${remedy})` };
  });
}
