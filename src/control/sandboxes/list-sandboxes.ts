import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { SandboxQuery } from '../../core/ports/store/sandbox-store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';

export async function listSandboxes(
  control: Control,
  caller: Caller,
  query: Omit<SandboxQuery, 'workspaceId'>,
): Promise<Page<SandboxRecord>> {
  requireScope(caller, 'read');
  return control.store.read('list', (tx) =>
    tx.sandboxes.list({ ...query, workspaceId: visibleWorkspace(caller) }),
  );
}
