import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { SandboxQuery } from '../../core/ports/store/sandbox-store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlDeps } from '../deps.ts';

export async function listSandboxes(
  deps: ControlDeps,
  caller: Caller,
  query: Omit<SandboxQuery, 'workspaceId'>,
): Promise<Page<SandboxRecord>> {
  requireScope(caller, 'read');
  return deps.store.read('list', (tx) =>
    tx.sandboxes.list({ ...query, workspaceId: visibleWorkspace(caller) }),
  );
}
