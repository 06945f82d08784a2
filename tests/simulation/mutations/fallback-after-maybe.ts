import type { Mutation } from './mutation.ts';

export const fallbackAfterMaybe: Mutation = {
  name: 'fallback-after-maybe',
  what: 'an attempt that may have created something counts as gone, and the next backend is tried',
  breaks: ['gone-is-proven'],
  patches: [
    {
      file: 'src/control/lifecycle/steps/fail-attempt.ts',
      search: "const nothingLeft = failure.creation === 'not_created';",
      replace: "const nothingLeft = failure.creation !== 'created';",
    },
  ],
};
