import type { Mutation } from './mutation.ts';

export const endBeforeCheckpoint: Mutation = {
  name: 'end-before-checkpoint',
  what: 'a sandbox whose checkpoint is still being taken ends at its time',
  breaks: ['checkpoint-kept'],
  patches: [
    {
      file: 'src/control/sandboxes/checkpoint-first.ts',
      search: "if (before) return { kind: 'wait', operationId: before.id };",
      replace: 'if (before) return END;',
    },
  ],
};
