import type { Mutation } from './mutation.ts';

export const budgetMiscounts: Mutation = {
  name: 'budget-miscounts',
  what: 'a budget counts a micro-dollar less than is captured under it',
  breaks: ['budget-is-captures'],
  patches: [
    {
      file: 'src/core/credits/ledger/ledger.ts',
      search: 'captureBudgets(hold, { transferId, amountMicroUsd: amount, at });',
      replace: 'captureBudgets(hold, { transferId, amountMicroUsd: amount - 1, at });',
    },
  ],
};
