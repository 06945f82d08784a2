import type { Mutation } from './mutation.ts';

export const restartForgetsSuccess: Mutation = {
  name: 'restart-forgets-success',
  what: 'a start learns nothing of attempts whose sandbox was destroyed since',
  breaks: ['restart-keeps-health'],
  patches: [
    {
      file: 'src/control/lifecycle/attempt-health.ts',
      search: 'if (judged === null && !isRunning(attempt)) return [];',
      replace: "if (attempt.state === 'gone') return [];",
    },
  ],
};
