import type { Tx } from '../../ports/store/store.ts';
import { accounts } from '../accounts.ts';
import { defaultPolicy } from '../policy.ts';

const PURSE = 'liab:credits:';
const ORG_PURSE = accounts.orgCredits('');

async function spendsFrom(tx: Tx, workspaceId: string, purse: string): Promise<boolean> {
  return ((await tx.ledger.policy(workspaceId)) ?? defaultPolicy(workspaceId)).purse === purse;
}

/** Returns why no workspace can spend the money of a purse; `null` where a workspace can. */
async function strandedIn(tx: Tx, purse: string): Promise<string | null> {
  if (purse.startsWith(ORG_PURSE)) {
    const orgId = purse.slice(ORG_PURSE.length);
    for (const { id, deletedAt } of await tx.tenancy.workspaces(orgId))
      if (deletedAt === undefined && (await spendsFrom(tx, id, purse))) return null;
    return `no workspace of the org "${orgId}" spends from it`;
  }
  const id = purse.slice(PURSE.length);
  const workspace = await tx.tenancy.workspace(id);
  if (workspace?.deletedAt !== undefined) return `the workspace "${id}" is deleted`;
  return (await spendsFrom(tx, id, purse)) ? null : `the workspace "${id}" spends from another purse`;
}

/** Reports every purse that has money which no workspace can spend. */
export async function checkStranded(tx: Tx, find: (account: string, detail: string) => void): Promise<void> {
  for (const { account, balance } of await tx.ledger.balances()) {
    if (balance <= 0 || !account.startsWith(PURSE)) continue;
    const why = await strandedIn(tx, account);
    if (why !== null) find(account, `${balance} lies there, and ${why}.`);
  }
}
