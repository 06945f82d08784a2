import type { Extension, ResolvedSecret } from '../../../core/ports/extension.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import type { StepSubject } from './step.ts';

/** Returns the secrets of the recipe with their values as they are now. */
export async function secretsOf(
  deps: ControlPorts,
  { sandbox, documents: { recipe } }: StepSubject,
  { header }: Extension,
  signal: AbortSignal,
): Promise<readonly ResolvedSecret[]> {
  if (recipe.secretRefs.length === 0) return [];
  return await deps.resolveSecrets(sandbox.workspaceId, recipe.secretRefs, header.capabilities, signal);
}

/** Returns the values that setup commands can see: their output is kept, and must not hold them. */
export async function exposedValues(
  deps: ControlPorts,
  { sandbox, documents: { recipe } }: StepSubject,
  { header }: Extension,
  signal: AbortSignal,
): Promise<string[]> {
  const exposed = recipe.secretRefs.filter(({ delivery }) => delivery !== 'broker');
  if (exposed.length === 0) return [];
  const secrets = await deps.resolveSecrets(sandbox.workspaceId, exposed, header.capabilities, signal);
  return secrets.map(({ value }) => value);
}
