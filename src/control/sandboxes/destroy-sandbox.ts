import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { firstWithin, waitForSandbox } from '../lifecycle/wait-for-sandbox.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Recorded } from '../requests/audit.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';
import { earlyWhenTaken } from './answers-early.ts';
import type { WaitOptions } from './establish.ts';

export interface Destruction {
  readonly sandbox: SandboxRecord;
  /** Whether the caller only let go of a shared sandbox of another creator: it lives on. */
  readonly released: boolean;
}

/** Whether the caller may destroy a sandbox: a shared one only as its creator or an administrator; others only let go of it. */
function mayDestroy(caller: Caller, sandbox: SandboxRecord): boolean {
  return sandbox.scope !== 'shared' || caller.actor === 'adm' || caller.keyId === sandbox.keyId;
}

async function cancelRecreate(tx: Tx, deps: ControlPorts, edit: SandboxEdit): Promise<void> {
  if (!edit.row.recreating) return;
  if (edit.row.holdId) await deps.ledger.resolve(tx, edit.row.holdId, 'voided', edit.now);
  edit.patch({ recreating: false });
}

interface DestroySandbox extends WaitOptions {
  readonly id: string;
}

/** Destroys a sandbox. Idempotent, accepted from every state. A call in flight for the sandbox is interrupted. */
export async function destroySandbox(
  control: Control,
  caller: Caller,
  { id, ...options }: DestroySandbox,
): Promise<Destruction> {
  requireScope(caller, 'sandboxes');
  let interrupts = false;
  let changes = false;
  const recorded: Recorded<Destruction & TakenUp> = {
    label: 'destroy',
    action: 'destroySandbox',
    target: ({ sandbox }) => sandbox.id,
    changed: () => changes,
    options: earlyWhenTaken(control, options),
  };
  const outcome = await recordedTransaction(
    control,
    caller,
    recorded,
    async (tx): Promise<Destruction & TakenUp> => {
      interrupts = false;
      changes = false;
      const row = await findSandbox(tx, caller, id);
      if (row.state === 'destroyed') return { sandbox: row, claim: null, released: false };
      if (!mayDestroy(caller, row)) return { sandbox: row, claim: null, released: true };
      changes = true;
      const edit = new SandboxEdit(row, control, control.clock.now());
      if (row.state === 'destroying') {
        await cancelRecreate(tx, control, edit);
        edit.patch({ workDueAt: edit.now });
      } else {
        interrupts = row.state === 'provisioning' || pendingOperation(row) !== null;
        edit.move('destroying', { actor: caller.actor }, { reason: 'destroy' });
      }
      return { ...(await control.driver.takeUp(tx, edit)), released: false };
    },
  );
  const { sandbox, released } = outcome;
  if (released || sandbox.state === 'destroyed') return outcome;
  if (interrupts) control.driver.interrupt(sandbox.uid);
  const driven = control.driver.follow(outcome);
  if (!options.wait) return outcome;
  const timeoutMs = options.timeoutMs ?? control.settings.waitMs;
  const endsAt = control.clock.now() + timeoutMs;
  const gone = (row: SandboxRecord) => row.state === 'destroyed';
  const reached = await firstWithin(control, driven, timeoutMs, options.signal);
  if (reached && gone(reached)) return { sandbox: reached, released: false };
  const last = await waitForSandbox(control, sandbox.uid, gone, {
    timeoutMs: endsAt - control.clock.now(),
    signal: options.signal,
  });
  return { sandbox: last ?? sandbox, released: false };
}
