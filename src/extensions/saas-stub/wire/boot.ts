import { z } from 'zod';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import type { Boot, FaultRule } from './protocol.ts';
import { FaultRule as FaultRuleSchema } from './protocol.ts';

/** Returns variables and secrets for the inside. */
export function bootOf(spec: ProvisionSpec): Boot {
  const env: Record<string, string> = { ...spec.recipe.variables };
  const files: Boot['files'] = [];
  for (const { name, delivery, value } of spec.secrets) {
    if (delivery === 'env') env[name] = value;
    else files.push({ name, content: value });
  }
  return { env, files };
}

/** `fault`: one rule or several, only for the attempts at this sandbox. */
export const StubInputs = z.object({
  fault: z
    .preprocess(
      (given) => (Array.isArray(given) ? given : given === null ? [] : [given]),
      z.array(FaultRuleSchema).max(32),
    )
    .optional(),
});

export function faultsOf(spec: ProvisionSpec, extensionId: string): FaultRule[] {
  const { fault = [] } = StubInputs.parse(spec.recipe.inputs);
  return fault.filter(({ match }) => match?.extension === undefined || match.extension === extensionId);
}
