import type { Command } from 'commander';
import type { AuditEntry } from '../../../contract/tenancy/audit.ts';
import { wholeNumber } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

interface Flags {
  readonly byKey?: string;
  readonly action?: string;
  readonly target?: string;
  readonly limit: number;
}

function columns(_rows: readonly AuditEntry[], now: number): Column<AuditEntry>[] {
  return [
    { title: 'SEQ', align: 'right', value: (row) => String(row.seq) },
    { title: 'WHEN', value: (row) => relativeTime(row.at, now) },
    { title: 'WHO', value: (row) => `${row.actor} ${row.key_id ?? 'local'}` },
    { title: 'ACTION', value: (row) => row.action },
    { title: 'TARGET', cuttable: true, value: (row) => row.target },
    { title: 'OUTCOME', value: (row) => row.outcome },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  command
    .option('--by-key <id>', 'only by this key')
    .option('--action <operation>', 'only this operation, such as destroySandbox')
    .option('--target <name>', 'only on this target')
    .option('-n, --limit <number>', 'at most so many, the latest', wholeNumber, 50)
    .action(async (flags: Flags) => {
      const { audit } = await invocation.client();
      const filter = { keyId: flags.byKey, action: flags.action, target: flags.target, limit: flags.limit };
      const page = await audit.list(filter).page();
      printList(invocation.printer, page, {
        empty: 'Nothing was recorded.',
        name: (row) => String(row.seq),
        columns,
      });
    });
}
