import type { Mutation } from './mutation.ts';

export const ttlTimerInMemory: Mutation = {
  name: 'ttl-timer-in-memory',
  what: 'only the process that admitted a sandbox ends it at its deadline',
  breaks: ['deadline-enforced'],
  patches: [
    {
      file: 'src/control/sandboxes/expire-sandboxes.ts',
      search: 'const BATCH = 100;',
      replace: 'const BATCH = 100;\nexport const armed = new Set<string>();',
    },
    {
      file: 'src/control/sandboxes/expire-sandboxes.ts',
      search: "(row) => expire(control, waitingFor, row, { dueAt: pastDeadline, reason: 'ttl' })",
      replace:
        "async (row) => armed.has(control.instance + row.uid) && (await expire(control, waitingFor, row, { dueAt: pastDeadline, reason: 'ttl' }))",
    },
    {
      file: 'src/control/sandboxes/establish.ts',
      search: '  const fresh = isClaim(admitted);',
      replace:
        '  const fresh = isClaim(admitted);\n  if (fresh) armed.add(control.instance + admitted.sandbox.uid);',
    },
    {
      file: 'src/control/sandboxes/establish.ts',
      search: "import type { Control } from '../control.ts';",
      replace:
        "import type { Control } from '../control.ts';\nimport { armed } from './expire-sandboxes.ts';",
    },
  ],
};
