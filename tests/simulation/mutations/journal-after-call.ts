import type { Mutation } from './mutation.ts';

export const journalAfterCall: Mutation = {
  name: 'journal-after-call',
  what: 'an attempt is journalled when the backend has answered, not before it is called',
  breaks: ['journal-first'],
  patches: [
    {
      file: 'src/control/lifecycle/edit/journal-attempt.ts',
      search: 'await tx.attempts.insert(attempt);',
      replace: '',
    },
    {
      file: 'src/control/lifecycle/edit/attempt-edit.ts',
      search: 'export async function replaceAttempt(',
      replace: `export async function journalLate(scope: EditScope, attempt: AttemptRecord): Promise<void> {
  if (scope.attempts.some(({ attemptId }) => attemptId === attempt.attemptId)) return;
  await scope.tx.attempts.insert(attempt);
  scope.attempts.push(attempt);
}

export async function replaceAttempt(`,
    },
    {
      file: 'src/control/lifecycle/steps/provision.ts',
      search: "const wanted = scope.edit.row.state === 'provisioning';",
      replace:
        "await journalLate(scope, attempt);\n      const wanted = scope.edit.row.state === 'provisioning';",
    },
    {
      file: 'src/control/lifecycle/steps/provision.ts',
      search: "import { isOutrun, judgeAttempt, replaceAttempt } from '../edit/attempt-edit.ts';",
      replace:
        "import { isOutrun, journalLate, judgeAttempt, replaceAttempt } from '../edit/attempt-edit.ts';",
    },
    {
      file: 'src/control/lifecycle/steps/fail-attempt.ts',
      search: "const nothingLeft = failure.creation === 'not_created';",
      replace:
        "await journalLate(scope, attempt);\n  const nothingLeft = failure.creation === 'not_created';",
    },
    {
      file: 'src/control/lifecycle/steps/fail-attempt.ts',
      search: "import { isOutrun, judgeAttempt } from '../edit/attempt-edit.ts';",
      replace: "import { isOutrun, journalLate, judgeAttempt } from '../edit/attempt-edit.ts';",
    },
  ],
};
