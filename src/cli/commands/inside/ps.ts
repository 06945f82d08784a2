import type { Command } from 'commander';
import type { ProcessInfo } from '../../../contract/sandboxes/exec.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import type { Printer } from '../../output/printer.ts';
import { ageOf } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function stateText({ running, exit }: ProcessInfo): string {
  return running ? 'running' : `exited ${exit?.code ?? '?'}`;
}

function columns(_rows: readonly ProcessInfo[], now: number, printer: Printer): Column<ProcessInfo>[] {
  const { green, dim } = printer.out;
  return [
    { title: 'PROCESS', value: (row) => row.process_id },
    { title: 'STATE', value: stateText, paint: (text, row) => (row.running ? green(text) : dim(text)) },
    { title: 'AGE', value: (row) => ageOf(row.started_at, now) },
    { title: 'COMMAND', cuttable: true, value: (row) => row.command.join(' ') },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .option('--service <name>', 'of this service, where a sandbox is made of services')
    .action(async (id: string, flags: { readonly service?: string }) => {
      const items = await (await invocation.client()).processes.list(id, flags);
      printList(
        invocation.printer,
        { items },
        { empty: 'There are no processes.', name: (row) => row.process_id, columns },
      );
    });
}
