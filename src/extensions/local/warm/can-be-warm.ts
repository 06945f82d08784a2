import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import type { Levels } from '../host/levels.ts';
import { levelFor } from '../host/levels.ts';

/** Returns whether a warm sandbox fits the spec. Limits, variables, files, secrets and ends can be given later; mounts cannot. */
export function canBeWarm(spec: ProvisionSpec, levels: Levels): boolean {
  const { resources, inputs } = spec.recipe;
  return (
    // A sandbox started ahead may have a disk that is never flushed.
    spec.recipe.persistence === 'ephemeral' &&
    spec.recipe.workspace.access !== 'ro' &&
    (spec.recipe.mounts ?? []).length === 0 &&
    resources.disk_mb === null &&
    levelFor(spec.recipe.isolation, levels) === 'container' &&
    !spec.recipe.volumes?.length &&
    inputs.warm !== false
  );
}
