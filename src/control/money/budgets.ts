import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Budget, CreateBudgetRequest, CreditLimits } from '../../contract/money/credits.ts';
import { accounts } from '../../core/credits/accounts.ts';
import type { BudgetRecord } from '../../core/credits/budget.ts';
import { windowOf } from '../../core/credits/budget.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { policyOf } from './sandbox-money.ts';

const MOST_BUDGETS = 32;

function requireAdministrator(caller: Caller): void {
  requireScope(caller, 'credits');
  if (caller.actor !== 'adm')
    throw new SandboxerError('SBX_FORBIDDEN', 'Only an administrator decides about money.');
}

async function viewOf(tx: Tx, budget: BudgetRecord, now: number): Promise<Budget> {
  const window = windowOf(budget.period, now);
  const prefix = accounts.budgetQuota(`${budget.id}:${window.name}:`);
  const used: Budget['used'] = [];
  for (const { account, balance } of await tx.ledger.balances()) {
    if (!account.startsWith(prefix)) continue;
    const name = account.slice(prefix.length);
    const spent = await tx.ledger.balance(accounts.budgetSpent(`${budget.id}:${window.name}:${name}`));
    const left = budget.limitMicroUsd + balance;
    used.push({ name, spent_micro_usd: spent, held_micro_usd: -balance - spent, left_micro_usd: left });
  }
  return {
    budget_id: budget.id,
    scope: budget.scope,
    value: budget.value,
    period: budget.period,
    limit_micro_usd: budget.limitMicroUsd,
    throttle_seconds: budget.throttleSeconds,
    own_keys: budget.ownKeys === true,
    created_at: isoTime(budget.createdAt),
    used,
    resets_at: window.resetsAt === null ? null : isoTime(window.resetsAt),
  };
}

export async function listBudgets(deps: ControlPorts, caller: Caller): Promise<Budget[]> {
  requireScope(caller, 'read');
  return deps.store.read('budgets', async (tx) => {
    const { budgets } = await policyOf(tx, caller.workspaceId);
    const views: Budget[] = [];
    for (const budget of budgets) views.push(await viewOf(tx, budget, deps.clock.now()));
    return views;
  });
}

/** Counts from now on: what runs already is under it from its next stretch. */
export async function createBudget(
  deps: ControlPorts,
  caller: Caller,
  request: CreateBudgetRequest,
): Promise<Budget> {
  requireAdministrator(caller);
  const id = deps.ids.next('bgt');
  const subject = { action: 'createBudget', target: id, details: { ...request } };
  return auditedTransaction(deps, caller, { label: 'create-budget', subject }, async (tx) => {
    const policy = await policyOf(tx, caller.workspaceId);
    if (policy.budgets.length >= MOST_BUDGETS) {
      throw new SandboxerError('SBX_QUOTA_EXCEEDED', `A workspace has at most ${MOST_BUDGETS} budgets.`);
    }
    const value = request.scope === 'workspace' ? null : request.value;
    const key = request.scope === 'key' && value !== null ? await tx.tenancy.key(value) : null;
    const budget: BudgetRecord = {
      id,
      scope: request.scope,
      value,
      ...(key && { line: key.lines[0] }),
      period: request.period,
      limitMicroUsd: request.limit_micro_usd,
      throttleSeconds: request.throttle_seconds,
      ownKeys: request.own_keys,
      createdAt: deps.clock.now(),
    };
    await tx.ledger.setPolicy({ ...policy, budgets: [...policy.budgets, budget] });
    return viewOf(tx, budget, budget.createdAt);
  });
}

export async function deleteBudget(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireAdministrator(caller);
  const subject = { action: 'deleteBudget', target: id };
  await auditedTransaction(deps, caller, { label: 'delete-budget', subject }, async (tx) => {
    const policy = await policyOf(tx, caller.workspaceId);
    const budgets = policy.budgets.filter((budget) => budget.id !== id);
    if (budgets.length === policy.budgets.length)
      throw new SandboxerError('SBX_NOT_FOUND', `There is no budget "${id}".`);
    await tx.ledger.setPolicy({ ...policy, budgets });
  });
}

export async function getLimits(deps: ControlPorts, caller: Caller): Promise<CreditLimits> {
  requireScope(caller, 'read');
  return deps.store.read('limits', async (tx) => {
    const { maxLiving, createsPerMinute } = await policyOf(tx, caller.workspaceId);
    return { max_living: maxLiving, creates_per_minute: createsPerMinute };
  });
}

export async function setLimits(
  deps: ControlPorts,
  caller: Caller,
  limits: CreditLimits,
): Promise<CreditLimits> {
  requireAdministrator(caller);
  const subject = { action: 'setLimits', target: caller.workspaceId, details: { ...limits } };
  return auditedTransaction(deps, caller, { label: 'set-limits', subject }, async (tx) => {
    const policy = await policyOf(tx, caller.workspaceId);
    const { max_living: maxLiving, creates_per_minute: createsPerMinute } = limits;
    await tx.ledger.setPolicy({ ...policy, maxLiving, createsPerMinute });
    return limits;
  });
}
