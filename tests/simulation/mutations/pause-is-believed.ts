import type { Mutation } from './mutation.ts';

export const pauseIsBelieved: Mutation = {
  name: 'pause-is-believed',
  what: 'a paused sandbox is paid for on without asking its backend whether it really rests',
  breaks: ['spend-is-covered'],
  patches: [
    {
      file: 'src/control/sandboxes/fund-sandboxes.ts',
      search: 'if (!found || !mayRunUnnoticed(found.meter, askedAt)) return null;',
      replace: 'if (askedAt > 0) return null;',
    },
  ],
};
