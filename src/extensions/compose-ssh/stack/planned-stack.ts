import type { StackPlan } from '../../../contract/sandboxes/stack-plan.ts';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { StackRefusal } from '../compose/yaml/finding.ts';
import type { PlaceTerms } from './analyse-stack.ts';
import { AnalysedStack } from './analyse-stack.ts';

/** Placeholders for facts that only a host has. */
const SOMEWHERE: PlaceTerms = {
  directory: '/STACK',
  secretDirectory: '/SECRETS',
  agent: '/AGENT',
  gatewayImage: 'sandboxer-gateway:latest',
  subnets: [],
  composeVersion: null,
  unheld: [],
};

/** Returns what provision would make of a stack, also where that is a refusal. */
export async function plannedStack(spec: ProvisionSpec, signal: AbortSignal): Promise<StackPlan> {
  try {
    const stack = await AnalysedStack.of(spec, signal);
    const { file, services, notes } = stack.plan(SOMEWHERE);
    return {
      accepted: true,
      file,
      services: [...services],
      findings: [...stack.findings],
      notes: [...notes],
    };
  } catch (error) {
    if (!(error instanceof StackRefusal)) throw error;
    return { accepted: false, file: null, services: [], findings: [...error.findings], notes: [] };
  }
}
