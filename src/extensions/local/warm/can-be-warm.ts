import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import type { Levels } from '../host/levels.ts';
import { levelFor } from '../host/levels.ts';

/** Limits, variables, files, secrets and ends can be given later; what is mounted at the start cannot. */
export function canBeWarm(spec: ProvisionSpec, levels: Levels): boolean {
  const { resources, inputs } = spec.recipe;
  return (
    // What was started ahead may forget its disk.
    spec.recipe.persistence === 'ephemeral' &&
    spec.recipe.workspace.access !== 'ro' &&
    (spec.recipe.mounts ?? []).length === 0 &&
    resources.disk_mb === null &&
    levelFor(spec.recipe.isolation, levels) === 'container' &&
    !spec.recipe.volumes?.length &&
    inputs.warm !== false
  );
}
