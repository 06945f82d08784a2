import { z } from 'zod';
import { BooleanInput } from '../../../contract/profiles/inputs.ts';
import type { Recipe } from '../../../core/recipe/recipe.ts';

export const DockerInputs = z.object({
  read_only_root: BooleanInput.default(false).describe('Whether the root of the container is read-only.'),
});

export function wantsReadOnlyRoot({ inputs }: Recipe): boolean {
  return DockerInputs.parse(inputs).read_only_root;
}
