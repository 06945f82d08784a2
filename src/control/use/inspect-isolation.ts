import { SandboxerError } from '../../contract/errors/errors.ts';
import type { IsolationReport } from '../../contract/extensions/isolation.ts';
import type { Handle } from '../../core/ports/extension.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { contextOf, extensionOf } from '../backends/backend-context.ts';
import type { Control } from '../control.ts';
import { openSandbox } from './use-sandbox.ts';

interface InspectIsolation {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Returns the isolation of a living sandbox, as its backend reads it where it is enforced. Reading it is not use. */
export async function inspectIsolation(
  control: Control,
  caller: Caller,
  { id, signal }: InspectIsolation,
): Promise<IsolationReport> {
  const { sandbox } = await openSandbox(control, caller, { id, counts: false });
  const extension = extensionOf(control, sandbox.extensionId as string);
  if (!extension.inspectIsolation) {
    throw new SandboxerError('SBX_UNSUPPORTED', `${extension.header.id} does not report its isolation.`, {
      backend: extension.header.id,
      remedy: 'Its capability vector says what it promises: see the list of extensions.',
    });
  }
  const context = await contextOf(control, sandbox, signal);
  const facts = await extension.inspectIsolation(sandbox.handle as Handle, context);
  return { sandbox_id: sandbox.id, extension: extension.header.id, ...facts };
}
