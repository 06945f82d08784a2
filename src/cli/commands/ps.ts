import type { Command } from 'commander';
import type { ProcessInfo } from '../../contract/exec.ts';
import type { Invocation } from '../invocation.ts';
import type { Printer } from '../output/printer.ts';
import { ageOf } from '../output/relative-time.ts';
import type { Column } from '../output/table.ts';

function stateText({ running, exit }: ProcessInfo): string {
  return running ? 'running' : `exited ${exit?.code ?? '?'}`;
}

function columns(printer: Printer, now: number): Column<ProcessInfo>[] {
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
      const { printer } = invocation;
      const items = await (await invocation.client()).processes.list(id, flags);
      printer.result({ items }, () => {
        if (printer.quiet) for (const { process_id } of items) printer.line(process_id);
        else if (items.length === 0) printer.note('There are no processes.');
        else printer.table(columns(printer, Date.now()), items);
      });
    });
}
