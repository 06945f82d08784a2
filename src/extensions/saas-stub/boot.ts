import { z } from 'zod';
import { SandboxerError } from '../../contract/errors.ts';
import type { ProvisionSpec } from '../../core/extension.ts';
import type { Boot, FaultRule } from './protocol.ts';
import { FaultRule as FaultRuleSchema } from './protocol.ts';

/** Variables and secrets as the inside is to see them. */
export function bootOf(spec: ProvisionSpec): Boot {
  const env: Record<string, string> = { ...spec.recipe.variables };
  const files: Boot['files'] = [];
  for (const { name, delivery, value } of spec.secrets) {
    if (delivery === 'env') env[name] = value;
    else files.push({ name, content: value });
  }
  return { env, files };
}

/** `inputs.fault`: one rule or several, for the attempts at this sandbox alone. */
export function faultsOf(spec: ProvisionSpec, extensionId: string): FaultRule[] {
  const given = spec.recipe.inputs.fault;
  if (given === undefined || given === null) return [];
  const parsed = z
    .array(FaultRuleSchema)
    .max(32)
    .safeParse(Array.isArray(given) ? given : [given]);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `The fault is not valid: ${issue?.message ?? 'unknown'}`,
      {
        field: ['inputs', 'fault', ...(issue?.path ?? [])].join('.'),
        creation: 'not_created',
        backend: extensionId,
      },
    );
  }
  return parsed.data.filter(({ match }) => match?.extension === undefined || match.extension === extensionId);
}
