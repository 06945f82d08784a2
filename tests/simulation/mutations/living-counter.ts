import type { Mutation } from './mutation.ts';

export const livingCounter: Mutation = {
  name: 'living-counter',
  what: 'living sandboxes are counted up and down instead of derived from the rows',
  breaks: ['living-within-limit', 'quota-when-full'],
  patches: [
    {
      file: 'src/control/assets/require-room.ts',
      search: 'const free = most - (await tx.sandboxes.countLiving(workspaceId));',
      replace:
        'const free = most - livingCount(deps, workspaceId);\n  if (free > 0) count(deps, workspaceId, 1);',
    },
    {
      file: 'src/control/assets/require-room.ts',
      search: 'const PAGE = 100;',
      replace: `const PAGE = 100;
const counts = new Map<string, number>();
function livingCount(deps: ControlPorts, workspaceId: string): number {
  return counts.get(\`\${deps.instance} \${workspaceId}\`) ?? 0;
}
export function count(deps: ControlPorts, workspaceId: string, by: number): void {
  counts.set(\`\${deps.instance} \${workspaceId}\`, livingCount(deps, workspaceId) + by);
}`,
    },
    {
      file: 'src/control/lifecycle/edit/sandbox-edit.ts',
      search: '    const meter = await closeMoney({ tx, deps, at: edit.now }, before);',
      replace:
        '    count(deps, before.workspaceId, -1);\n    const meter = await closeMoney({ tx, deps, at: edit.now }, before);',
    },
    {
      file: 'src/control/lifecycle/edit/sandbox-edit.ts',
      search: "import { billOf, closeMoney } from '../../money/sandbox-money.ts';",
      replace:
        "import { count } from '../../assets/require-room.ts';\nimport { billOf, closeMoney } from '../../money/sandbox-money.ts';",
    },
  ],
};
