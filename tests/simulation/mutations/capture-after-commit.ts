import type { Mutation } from './mutation.ts';

export const captureAfterCommit: Mutation = {
  name: 'capture-after-commit',
  what: 'the money of a sandbox that ends is settled in a transaction after the one that ends it',
  breaks: ['hold-has-living-owner', 'no-open-meter-on-the-dead', 'charge-is-exact'],
  patches: [
    {
      file: 'src/control/lifecycle/edit/sandbox-edit.ts',
      search: 'const meter = await closeMoney({ tx, deps, at: edit.now }, before);',
      replace:
        "const meter = null as Awaited<ReturnType<typeof closeMoney>>;\n    void deps.store.transaction('late-money', (late) => closeMoney({ tx: late, deps, at: edit.now }, before)).catch(() => {});",
    },
  ],
};
