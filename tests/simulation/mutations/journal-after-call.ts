import type { Mutation } from './mutation.ts';

export const journalAfterCall: Mutation = {
  name: 'journal-after-call',
  what: 'an attempt is journalled when the backend has answered, not before it is called',
  breaks: ['journal-first'],
  patches: [
    {
      file: 'src/control/lifecycle/journal-attempt.ts',
      search: 'await tx.attempts.insert(attempt);',
      replace: '',
    },
    {
      file: 'src/control/lifecycle/settle-step.ts',
      search: 'const GO_ON: Verdict = {};',
      replace: `const GO_ON: Verdict = {};
async function journalLate(scope: SettleScope, attempt: AttemptRecord): Promise<void> {
  if (scope.attempts.some(({ attemptId }) => attemptId === attempt.attemptId)) return;
  await scope.tx.attempts.insert(attempt);
  scope.attempts.push(attempt);
}`,
    },
    {
      file: 'src/control/lifecycle/settle-step.ts',
      search: "const wanted = scope.edit.row.state === 'provisioning';",
      replace:
        "await journalLate(scope, attempt);\n    const wanted = scope.edit.row.state === 'provisioning';",
    },
    {
      file: 'src/control/lifecycle/settle-step.ts',
      search: "const nothingLeft = failure.creation === 'not_created';",
      replace:
        "await journalLate(scope, attempt);\n    const nothingLeft = failure.creation === 'not_created';",
    },
  ],
};
