import type { Mutation } from './mutation.ts';

export const readyIsNotPaid: Mutation = {
  name: 'ready-is-not-paid',
  what: 'a sandbox whose deadline was moved before it was ready is free until the next funding',
  breaks: ['opened-as-told', 'no-free-time'],
  patches: [
    {
      file: 'src/control/money/sandbox-money.ts',
      search: 'const fundedUntil = leaseEnd(rule, leased, attempt.startedAt, toldDeadlineAt) + rule.graceMs;',
      replace:
        'const bound = leaseEnd(rule, leased, attempt.startedAt, toldDeadlineAt) + rule.graceMs;\n  const fundedUntil = earliestDeadlineAt === null ? bound : at;',
    },
  ],
};
