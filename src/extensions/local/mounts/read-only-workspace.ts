import { mkdir, rm } from 'node:fs/promises';
import type { Mount } from '../../../contract/profiles/inputs.ts';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { unpackTar } from '../../shared/unpack-tar.ts';

/** The workspace of the default user. */
const WORKSPACE_INSIDE = '/home/user/workspace';

/**
 * Makes a workspace that no user inside can write to, root included: its files lie outside and are mounted read-only. Returns
 * `null` when the recipe requests none.
 */
export async function readOnlyWorkspace(
  spec: ProvisionSpec,
  directory: string,
  owner: number | undefined,
  signal: AbortSignal,
): Promise<Mount | null> {
  if (spec.recipe.workspace.access !== 'ro') return null;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { mode: 0o755 });
  for (const { name } of spec.inputs.list) {
    await unpackTar(await spec.inputs.open(name, { signal }), directory, { owner, signal });
  }
  return { source: directory, target: WORKSPACE_INSIDE, access: 'ro' };
}
