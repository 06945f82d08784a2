import type { Mutation } from './mutation.ts';

export const eventOutsideTransaction: Mutation = {
  name: 'event-outside-transaction',
  what: 'the event of a transition is written in a transaction of its own, after it',
  breaks: ['event-with-transition'],
  patches: [
    {
      file: 'src/control/lifecycle/edit/sandbox-edit.ts',
      search: 'await tx.events.append(edit.events);',
      replace:
        "void deps.store.transaction('late-event', (late) => late.events.append(edit.events)).catch(() => {});",
    },
  ],
};
