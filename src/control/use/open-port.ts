import { SandboxerError } from '../../contract/errors/errors.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

/** A sandbox whose ports can be shown, now or once it is resumed. */
export async function openPort(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SandboxRecord> {
  requireScope(caller, 'sandboxes');
  const sandbox = await control.store.read('ports', (tx) => findSandbox(tx, caller, id));
  if (!isEstablished(sandbox.state)) {
    throw new SandboxerError('SBX_INVALID_STATE', `A sandbox that is ${sandbox.state} has no ports to show.`);
  }
  const vector = control.extensions.get(sandbox.extensionId as string)?.header.capabilities;
  if (vector?.ports) return sandbox;
  throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} cannot reach ports inside.`, {
    backend: sandbox.extensionId as string,
  });
}
