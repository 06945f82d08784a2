import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { StackPlan } from '../../contract/sandboxes/stack-plan.ts';
import type { ProvisionSpec } from '../../core/ports/extension.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { inputTrees } from '../assets/input-trees.ts';
import { stageTrees } from '../assets/stage-trees.ts';
import type { Control } from '../control.ts';
import { resolveRequest } from './resolve-request.ts';

const NOBODY = { owner: 'plan', sandboxUid: 'plan', attemptId: 'plan' };

interface PlanStack {
  readonly request: CreateSandboxRequest;
  readonly signal: AbortSignal;
}

/** Plans the compose stack of a request. Its trees are staged as for a create; nothing is started. */
export async function planStack(
  control: Control,
  caller: Caller,
  { request, signal }: PlanStack,
): Promise<StackPlan> {
  requireScope(caller, 'sandboxes');
  const extension = control.extensions.all().find(({ planStack }) => planStack !== undefined);
  if (extension?.planStack === undefined)
    throw new SandboxerError('SBX_UNSUPPORTED', 'No backend of this server runs compose stacks.', {
      remedy: 'Enable ext.compose-ssh in the configuration of the server.',
    });
  const { profile, recipe, trees } = resolveRequest(control, caller, request);
  const inputs = await stageTrees(control, caller, { profile, trees, signal });
  const spec: ProvisionSpec = {
    stamp: NOBODY,
    sandboxId: NOBODY.sandboxUid,
    workspaceId: caller.workspaceId,
    generation: 1,
    recipe,
    labels: {},
    // Names alone decide what is emitted.
    secrets: recipe.secretRefs.map(({ name, delivery }) => ({ name, delivery, value: '' })),
    inputs: inputTrees(control, { inputs }),
    endsAt: control.clock.now(),
  };
  return await extension.planStack(spec, signal);
}
