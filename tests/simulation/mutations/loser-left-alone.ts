import type { Mutation } from './mutation.ts';

export const loserLeftAlone: Mutation = {
  name: 'loser-left-alone',
  what: 'an attempt that was outrun goes on as if nothing had happened',
  breaks: ['losers-condemned', 'one-winner', 'one-attempt-at-a-time'],
  patches: [
    {
      file: 'src/control/lifecycle/steps/probe.ts',
      search: '  await condemnOutrun(scope, attempt);\n',
      replace: '',
    },
  ],
};
