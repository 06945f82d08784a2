import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { EndedFor } from '../../core/ports/extension.ts';
import { contextOf } from '../backends/backend-context.ts';
import { within } from '../backends/within.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** Asks the backend why a sandbox ended by itself; `null` where it gives no reason. */
export async function whyEnded(deps: ControlPorts, sandbox: SandboxRecord): Promise<EndedFor | null> {
  const { uid, generation, attempt, extensionId } = sandbox;
  const extension = extensionId === null ? undefined : deps.extensions.get(extensionId);
  if (extension?.whyEnded === undefined || attempt === null) return null;
  try {
    const id = attemptIdOf(uid, generation, attempt);
    const handle = (await deps.store.read('ended', (tx) => tx.attempts.get(id)))?.handle;
    if (!handle) return null;
    const signal = new AbortController().signal;
    return await within(deps, deps.settings.operationTimeoutMs, signal, async (given) => {
      return (await extension.whyEnded?.(handle, await contextOf(deps, sandbox, given))) ?? null;
    });
  } catch {
    return null;
  }
}
