import { SandboxerError } from '../../contract/errors/errors.ts';
import { imageReference } from '../../core/assets/image.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { MountedVolume, Recipe } from '../../core/recipe/recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

async function pinImage(tx: Tx, caller: Caller, recipe: Recipe): Promise<Partial<Recipe>> {
  if (recipe.image === 'host') return {};
  const images = (await tx.images.list(caller.workspaceId)).filter(({ state }) => state === 'available');
  const named = images.filter(
    (image) => image.name === recipe.image || imageReference(image) === recipe.image,
  );
  const image = named.filter(({ workspaceId }) => workspaceId === caller.workspaceId).at(-1) ?? named.at(-1);
  // An image that is not an asset may still be a reference that an engine knows.
  if (image === undefined || image.digest === null) return {};
  const { id: imageId, digest, extensionId } = image;
  return { image: `${image.name}@${digest}`, keptImage: { imageId, digest, extensionId } };
}

async function pinVolumes(
  tx: Tx,
  caller: Caller,
  volumes: readonly MountedVolume[],
): Promise<MountedVolume[]> {
  const own = await tx.volumes.list(caller.workspaceId);
  return volumes.map((mount, index) => {
    const volume = own.find(
      ({ name, workspaceId }) => name === mount.name && workspaceId === caller.workspaceId,
    );
    if (volume?.state !== 'available') {
      throw new SandboxerError('SBX_NOT_FOUND', `There is no volume "${mount.name}".`, {
        field: `volumes[${index}].name`,
        creation: 'not_created',
        remedy: `Make it first: sandboxer volumes create ${mount.name}.`,
      });
    }
    return { ...mount, volumeId: volume.id, extensionId: volume.extensionId };
  });
}

/** Pins the exact image and volumes in the recipe: names may mean something else tomorrow. */
export async function pinKept(deps: ControlPorts, caller: Caller, recipe: Recipe): Promise<Recipe> {
  const volumes = recipe.volumes ?? [];
  if (recipe.image === 'host' && volumes.length === 0) return recipe;
  return await deps.store.read('pin', async (tx) => ({
    ...recipe,
    ...(await pinImage(tx, caller, recipe)),
    ...(volumes.length === 0 ? {} : { volumes: await pinVolumes(tx, caller, volumes) }),
  }));
}
