import type { Command } from 'commander';
import type { Sandbox } from '../../contract/sandbox.ts';
import { durationSeconds } from '../args/numbers.ts';
import type { Invocation } from '../invocation.ts';
import { reportOf } from '../output/print-error.ts';
import { relativeTime } from '../output/relative-time.ts';
import type { Column } from '../output/table.ts';

interface Flags {
  readonly yes?: boolean;
  readonly olderThan: number;
}

interface Reaped {
  readonly sandbox: Sandbox;
  readonly outcome: string;
}

function columns(now: number): Column<Reaped>[] {
  return [
    { title: 'ID', value: ({ sandbox }) => sandbox.sandbox_id },
    { title: 'STATE', value: ({ sandbox }) => sandbox.state },
    { title: 'SINCE', value: ({ sandbox }) => relativeTime(sandbox.state_since, now) },
    { title: 'EXTENSION', value: ({ sandbox }) => sandbox.extension ?? '-' },
    { title: 'OUTCOME', cuttable: true, value: ({ outcome }) => outcome },
  ];
}

/**
 * Ends what is over and still there. Only sandboxes that the server has on record are touched: what it does not know
 * belongs to somebody else, and what it made and lost track of it removes by itself.
 */
export function define(command: Command, invocation: Invocation): void {
  command
    .option('--yes', 'destroy them; without it, they are only listed')
    .option('--older-than <duration>', 'only what is so for this long', durationSeconds, 0)
    .action(async (flags: Flags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const now = Date.now();
      const listed = await client.sandboxes
        .list({ state: ['failed', 'expired', 'destroying'], limit: 500 })
        .all();
      const stale = listed.filter(
        ({ state_since }) => now - Date.parse(state_since) >= flags.olderThan * 1000,
      );
      const items: Reaped[] = [];
      for (const sandbox of stale) {
        if (flags.yes !== true) {
          items.push({ sandbox, outcome: 'would be destroyed' });
          continue;
        }
        try {
          const after = await client.sandboxes.destroy(sandbox.sandbox_id, { wait: 'destroyed' });
          items.push({ sandbox: after, outcome: after.state });
        } catch (error) {
          invocation.exitCode = 5;
          items.push({ sandbox, outcome: reportOf(error).message });
        }
      }
      printer.result({ dry_run: flags.yes !== true, items }, () => {
        if (items.length === 0) printer.note('Nothing is stale.');
        else printer.table(columns(now), items);
        if (items.length > 0 && flags.yes !== true)
          printer.note('Nothing was changed. Run it again with --yes to destroy them.');
      });
    });
}
