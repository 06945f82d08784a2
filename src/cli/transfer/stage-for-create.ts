import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { SandboxerApiError } from '../../client/transport/api-error.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import type { Invocation } from '../invocation/invocation.ts';
import type { StageFlags } from './stage-inputs.ts';
import { stageInputs, unstagedRequest } from './stage-inputs.ts';

/** A sandbox that is there already answers such a request, whatever the route. */
function mayBeThere({ id, scope, consumer = {} }: CreateSandboxInput): boolean {
  const named = ['session_id', 'run_id', 'job_id', 'agent_id'].some((name) => Object.hasOwn(consumer, name));
  return id !== undefined || named || scope === 'agent' || scope === 'shared';
}

/** Whether the request has a route now or may have one soon. A request that is refused is refused here. */
async function hasRoute(
  client: SandboxerClient,
  request: CreateSandboxInput,
  signal?: AbortSignal,
): Promise<boolean> {
  try {
    const { candidates } = await client.routes.resolve(request, { signal });
    return candidates.some(({ excluded_by }) =>
      excluded_by.every(({ retry_after_seconds }) => retry_after_seconds !== undefined),
    );
  } catch (error) {
    // A key that may create but not look: the create itself will tell.
    if (error instanceof SandboxerApiError && error.status === 403) return true;
    throw error;
  }
}

interface StageForCreateOptions {
  readonly flags: StageFlags;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stages inputs as `stageInputs` does, for a create. Nothing is uploaded for a request that no backend takes: the request is
 * returned with ids of no upload, and the create refuses it with every candidate and its reasons.
 */
export async function stageForCreate(
  invocation: Invocation,
  client: SandboxerClient,
  request: CreateSandboxInput,
  { flags, signal }: StageForCreateOptions,
): Promise<CreateSandboxInput> {
  const unstaged = unstagedRequest(request, flags);
  if (unstaged === null) return request;
  const routed = await hasRoute(client, unstaged, signal);
  if (!routed && !mayBeThere(request)) return unstaged;
  return stageInputs(invocation, async () => client, request, { flags, signal });
}
