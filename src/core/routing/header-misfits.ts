import type { Exclusion } from '../../contract/routing/route.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { misfits } from './fit.ts';

/** What of a recipe a backend does not offer, with what would bring it where the backend knows. */
export function headerMisfits({ capabilities, remedies = {} }: ExtensionHeader, recipe: Recipe): Exclusion[] {
  return misfits(recipe, capabilities).map((misfit) => {
    const remedy = misfit.code === 'isolation' ? remedies[recipe.isolation] : undefined;
    return remedy === undefined ? misfit : { ...misfit, detail: `${misfit.detail} (${remedy})` };
  });
}
