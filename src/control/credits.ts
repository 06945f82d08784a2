import { SandboxerError } from '../contract/errors.ts';
import type { GrantRequest } from '../contract/money.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope } from '../core/caller.ts';
import { accounts } from '../core/ledger.ts';
import type { Tx } from '../core/store.ts';
import type { TransferRecord } from '../core/transfer.ts';
import { auditedTransaction } from './audit.ts';
import type { ControlDeps } from './deps.ts';

export interface WorkspaceBalance {
  readonly workspaceId: string;
  readonly availableMicroUsd: number;
  readonly heldMicroUsd: number;
  readonly spentMicroUsd: number;
}

async function balanceOf(tx: Tx, workspaceId: string): Promise<WorkspaceBalance> {
  const available = await tx.ledger.balance(accounts.credits(workspaceId));
  const held = await tx.ledger.balance(accounts.held(workspaceId));
  const granted = await tx.ledger.granted(workspaceId);
  return {
    workspaceId,
    availableMicroUsd: available,
    heldMicroUsd: held,
    spentMicroUsd: granted - available - held,
  };
}

export async function getBalance(deps: ControlDeps, caller: Caller): Promise<WorkspaceBalance> {
  requireScope(caller, 'read');
  return deps.store.read('balance', (tx) => balanceOf(tx, caller.workspaceId));
}

/** A repeated reference is the same grant: it adds nothing again. */
export async function grantCredits(
  deps: ControlDeps,
  caller: Caller,
  request: GrantRequest,
): Promise<WorkspaceBalance> {
  requireScope(caller, 'credits');
  if (caller.actor !== 'adm')
    throw new SandboxerError('SBX_FORBIDDEN', 'Only an administrator grants credits.');
  const { workspaceId } = caller;
  const reference = request.reference ?? deps.ids.next('grant');
  const details = { amount_micro_usd: request.amount_micro_usd };
  const subject = { action: 'grantCredits', target: reference, details };
  return auditedTransaction(deps, caller, 'grant', subject, async (tx) => {
    const now = deps.clock.now();
    const added = await deps.ledger.grant(
      tx,
      `grant:${workspaceId}:${reference}`,
      workspaceId,
      request.amount_micro_usd,
      now,
    );
    if (added) {
      await tx.events.append([
        {
          id: deps.ids.next('evt'),
          at: now,
          type: 'credits.granted',
          workspaceId,
          subject: `workspace:${workspaceId}:grant:${reference}`,
          subjectSeq: 1,
          sandboxUid: null,
          sandboxId: null,
          generation: null,
          state: null,
          previousState: null,
          actor: caller.actor,
          consumer: {},
          details: { amount_micro_usd: request.amount_micro_usd, reference },
        },
      ]);
    }
    return balanceOf(tx, workspaceId);
  });
}

export async function listTransfers(
  deps: ControlDeps,
  caller: Caller,
  after: number,
  limit: number,
): Promise<readonly TransferRecord[]> {
  requireScope(caller, 'read');
  return deps.store.read('transfers', (tx) =>
    tx.ledger.transfers({ workspaceId: caller.workspaceId, after, limit }),
  );
}
