import type { Command } from 'commander';
import type { ReapReport, StaleKind } from '../../../contract/sandboxes/stale.ts';
import { choices } from '../../args/choices.ts';
import { durationSeconds } from '../../args/numbers.ts';
import { EXIT } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { staleColumns, tellUnseen } from '../../output/stale-view.ts';
import type { Column } from '../../output/table.ts';

interface Flags {
  readonly yes?: boolean;
  readonly olderThan?: number;
  readonly kind?: readonly StaleKind[];
}

const KINDS: readonly StaleKind[] = ['expired', 'failed', 'half-destroyed', 'orphaned'];

type Reaped = ReapReport['items'][number];

const OUTCOMES: Readonly<Record<Reaped['outcome'], string>> = {
  'would-remove': 'would be removed',
  removed: 'removed',
  'under-way': 'under way',
  'left-alone': 'left alone',
  failed: 'failed',
};

const OUTCOME: Column<Reaped> = {
  title: 'OUTCOME',
  value: ({ outcome, detail }) => (outcome === 'failed' ? `failed: ${detail}` : OUTCOMES[outcome]),
};

/** Objects with the server's own mark or on its own record are removed; those of others are shown and left. */
export function define(command: Command, invocation: Invocation): void {
  command
    .option('--yes', 'remove it; without it, it is only listed')
    .option('--older-than <duration>', 'only what is so for this long', durationSeconds);
  choices(command, '--kind <kind>', `only ${KINDS.join(', ')}; may be repeated`, KINDS).action(
    async ({ yes = false, olderThan, kind }: Flags) => {
      const { printer } = invocation;
      const report = await (await invocation.client()).stale.reap({
        dry_run: !yes,
        ...(olderThan === undefined ? {} : { older_than: olderThan }),
        ...(kind === undefined ? {} : { kinds: [...kind] }),
      });
      const { items, unseen } = report;
      if (items.some(({ outcome }) => outcome === 'failed')) invocation.exitCode = EXIT.backend;
      printer.result(report, () => {
        const [what, name, where, age, evidence] = staleColumns() as Column<Reaped>[];
        const columns = [what, name, where, age, OUTCOME, evidence] as Column<Reaped>[];
        if (items.length === 0) printer.note('Nothing is stale.');
        else printer.table(columns, items);
        tellUnseen(printer, unseen);
        if (!yes && items.some(({ outcome }) => outcome === 'would-remove'))
          printer.note('Nothing was changed. Run it again with --yes to remove what is ours.');
      });
    },
  );
}
