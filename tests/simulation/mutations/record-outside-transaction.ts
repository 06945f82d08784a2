import type { Mutation } from './mutation.ts';

export const recordOutsideTransaction: Mutation = {
  name: 'record-outside-transaction',
  what: 'the audit row of what a request did is written in a transaction of its own, after it',
  breaks: ['record-with-change'],
  patches: [
    {
      file: 'src/control/requests/audit.ts',
      search: `        const subject = subjectOf(caller, action, target(done));
        await tx.audit.append([auditDraft(deps, caller, subject)]);`,
      replace: `        const draft = auditDraft(deps, caller, subjectOf(caller, action, target(done)));
        void deps.store.transaction('late-record', (late) => late.audit.append([draft])).catch(() => {});`,
    },
  ],
};
