import type { ProcessInfo } from '../../contract/sandboxes/exec.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SandboxSession } from '../../core/ports/session.ts';
import type { Sessions } from '../backends/sessions.ts';
import { within } from '../backends/within.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const ASK_MS = 10_000;

/** Whether its backend keeps processes that no caller is attached to. */
export function keepsProcesses({ extensions }: ControlPorts, { extensionId }: SandboxRecord): boolean {
  const extension = extensionId === null ? undefined : extensions.get(extensionId);
  return extension?.header.capabilities.background === true;
}

/** Returns the sessions of the services of a sandbox: each service has processes of its own. */
function partsOf(session: SandboxSession): readonly SandboxSession[] {
  const { services } = session;
  if (services === undefined) return [session];
  return services.names.map((name) => (name === services.first ? session : services.session(name)));
}

function lastOf({ running, background, ended_at }: ProcessInfo, now: number): number {
  if (background === false) return 0;
  if (running) return now;
  return ended_at === undefined ? 0 : Math.min(now, Date.parse(ended_at));
}

/**
 * Returns when a process that was started in its background last ran: now, while one does; 0 when none did, as far as is known.
 * `null` when the backend cannot be asked.
 */
export async function lastRun(
  deps: ControlPorts,
  sessions: Sessions,
  sandbox: SandboxRecord,
): Promise<number | null> {
  const ask = async (signal: AbortSignal) => {
    let last = 0;
    for (const part of partsOf(await sessions.of(sandbox))) {
      const now = deps.clock.now();
      for (const process of (await part.processes?.({ signal })) ?? [])
        last = Math.max(last, lastOf(process, now));
    }
    return last;
  };
  return await within(deps, ASK_MS, new AbortController().signal, ask).catch(() => null);
}
