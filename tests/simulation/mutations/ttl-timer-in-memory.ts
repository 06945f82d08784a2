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
      search: "(row) => expire(deps, driver, waitingFor, row, pastDeadline, 'ttl')",
      replace:
        "async (row) => armed.has(deps.instance + row.uid) && (await expire(deps, driver, waitingFor, row, pastDeadline, 'ttl'))",
    },
    {
      file: 'src/control/sandboxes/establish.ts',
      search: '  const fresh = isClaim(admitted);',
      replace:
        '  const fresh = isClaim(admitted);\n  if (fresh) armed.add(deps.instance + admitted.sandbox.uid);',
    },
    {
      file: 'src/control/sandboxes/establish.ts',
      search: "import type { ControlPorts } from '../ports/control-ports.ts';",
      replace:
        "import type { ControlPorts } from '../ports/control-ports.ts';\nimport { armed } from './expire-sandboxes.ts';",
    },
  ],
};
