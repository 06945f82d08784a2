import { accounts } from '../../core/credits/accounts.ts';
import type { GrantRecord } from '../../core/credits/grant.ts';
import { burnDown } from '../../core/credits/grant.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const BATCH = 20;

/** Writes down what is left of a purse's grants, those that end first being spent first. */
export async function settleGrants(tx: Tx, purse: string, now: number): Promise<readonly GrantRecord[]> {
  const grants = await tx.ledger.liveGrants(purse);
  const left = (await tx.ledger.balance(purse)) + (await tx.ledger.balance(accounts.held(purse)));
  const settled = burnDown(grants, left).map((grant) =>
    grant.remainingMicroUsd === 0 ? { ...grant, endedAt: now } : grant,
  );
  const before = new Map(grants.map((grant) => [grant.id, grant.remainingMicroUsd]));
  for (const grant of settled)
    if (grant.remainingMicroUsd !== before.get(grant.id)) await tx.ledger.updateGrant(grant);
  return settled.filter(({ endedAt }) => endedAt === null);
}

/**
 * Takes back the unspent part of grants that have ended. An amount reserved at that moment stays until it is spent or released,
 * and is taken back at the next call.
 */
export async function expireGrants(deps: ControlPorts): Promise<void> {
  const now = deps.clock.now();
  const due = await deps.store.read('due-grants', (tx) => tx.ledger.dueGrants(now, BATCH));
  for (const { id, purse } of due) {
    await deps.store.transaction('expire-grant', async (tx) => {
      const grant = (await settleGrants(tx, purse, now)).find((live) => live.id === id);
      if (!grant) return;
      const amountMicroUsd = Math.min(grant.remainingMicroUsd, await tx.ledger.balance(purse));
      if (amountMicroUsd <= 0) return;
      const remainingMicroUsd = grant.remainingMicroUsd - amountMicroUsd;
      const { workspaceId } = grant;
      await tx.ledger.transfer([
        {
          id: `${id}:expiry:${grant.remainingMicroUsd}`,
          at: now,
          kind: 'expiry',
          debit: purse,
          credit: accounts.external,
          amountMicroUsd,
          workspaceId,
          holdId: null,
          sandboxUid: null,
        },
      ]);
      await tx.ledger.updateGrant({
        ...grant,
        remainingMicroUsd,
        endedAt: remainingMicroUsd === 0 ? now : null,
      });
      const eventId = deps.ids.next('evt');
      await tx.events.append([
        {
          id: eventId,
          at: now,
          type: 'credits.expired',
          workspaceId,
          subject: `workspace:${workspaceId}:expiry:${eventId}`,
          subjectSeq: 1,
          sandboxUid: null,
          sandboxId: null,
          generation: null,
          state: null,
          previousState: null,
          actor: 'atm',
          consumer: {},
          details: { grant_id: id, amount_micro_usd: amountMicroUsd },
        },
      ]);
    });
  }
}
