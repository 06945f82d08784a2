import type { Mutation } from './mutation.ts';

export const endBeforeCheckpoint: Mutation = {
  name: 'end-before-checkpoint',
  what: 'a sandbox whose checkpoint is still being taken ends at its time',
  breaks: ['checkpoint-kept'],
  patches: [
    {
      file: 'src/control/checkpoint-first.ts',
      search: "if (pendingOperation(sandbox)) return { kind: 'wait' };",
      replace: 'if (pendingOperation(sandbox)) return END;',
    },
  ],
};
