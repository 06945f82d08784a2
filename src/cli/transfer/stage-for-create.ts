import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { SandboxerApiError } from '../../client/transport/api-error.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import type { Invocation } from '../invocation/invocation.ts';
import type { StageFlags } from './stage-inputs.ts';
import { stageInputs, unstagedRequest } from './stage-inputs.ts';

/** Returns whether an existing sandbox may answer the request, whatever the route. */
function mayBeThere({ id, scope, consumer = {} }: CreateSandboxInput): boolean {
  const named = ['session_id', 'run_id', 'job_id', 'agent_id'].some((name) => Object.hasOwn(consumer, name));
  return id !== undefined || named || scope === 'agent' || scope === 'shared';
}

/** Returns whether the request has a route now or may have one soon. An invalid request is refused here. */
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
    // The key may create but not read routes: the create itself will report the error.
    if (error instanceof SandboxerApiError && error.status === 403) return true;
    throw error;
  }
}

interface StageForCreateOptions {
  readonly flags: StageFlags;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stages inputs as `stageInputs` does, for a create. Nothing is uploaded for a request that no backend takes: it is returned with
 * ids of no upload, and the create refuses it with every candidate and its reasons.
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
