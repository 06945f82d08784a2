import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import {
  awaitOperation,
  newOperation,
  requireBeforeDeadline,
  requireNoOperation,
} from '../lifecycle/operation.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Recorded } from '../requests/audit.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';
import { earlyWhenTaken } from './answers-early.ts';

function requireCapability(deps: ControlPorts, sandbox: SandboxRecord): void {
  const extension = deps.extensions.get(sandbox.extensionId as string);
  if (extension?.pause && extension.resume) return;
  throw new SandboxerError('SBX_UNSUPPORTED', `${sandbox.extensionId} cannot pause a sandbox.`, {
    backend: sandbox.extensionId as string,
  });
}

interface OperationRequest {
  readonly id: string;
  readonly kind: 'pause' | 'resume';
}

async function request(
  control: Control,
  caller: Caller,
  { id, kind }: OperationRequest,
): Promise<SandboxRecord> {
  requireScope(caller, 'sandboxes');
  let changes = false;
  const recorded: Recorded<TakenUp> = {
    label: kind,
    action: `${kind}Sandbox`,
    target: ({ sandbox }) => sandbox.id,
    changed: () => changes,
    options: earlyWhenTaken(control),
  };
  const taken = await recordedTransaction(control, caller, recorded, async (tx): Promise<TakenUp> => {
    const row = await findSandbox(tx, caller, id);
    const running = row.state === 'ready' || row.state === 'active';
    if (!running && row.state !== 'paused') {
      throw new SandboxerError('SBX_INVALID_STATE', `A sandbox that is ${row.state} cannot ${kind}.`);
    }
    requireNoOperation(row);
    changes = false;
    const there = kind === 'pause' ? row.state === 'paused' : running;
    if (there) return { sandbox: row, claim: null };
    changes = true;
    requireCapability(control, row);
    const now = control.clock.now();
    if (kind === 'resume') requireBeforeDeadline(row, now);
    const edit = new SandboxEdit(row, control, now);
    edit.patch({ operation: newOperation(control, { kind, actor: caller.actor, now }), workDueAt: now });
    return control.driver.takeUp(tx, edit);
  });
  const { sandbox } = taken;
  if (sandbox.operation?.kind !== kind || sandbox.operation.finishedAt !== null) return sandbox;
  return awaitOperation(control, sandbox, sandbox.operation.id, control.driver.follow(taken));
}

/** Pauses a sandbox. Idempotent: a paused sandbox is returned as it is. */
export function pauseSandbox(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SandboxRecord> {
  return request(control, caller, { id, kind: 'pause' });
}

/** Resumes a sandbox. Idempotent: a running sandbox is returned as it is. */
export function resumeSandbox(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SandboxRecord> {
  return request(control, caller, { id, kind: 'resume' });
}
