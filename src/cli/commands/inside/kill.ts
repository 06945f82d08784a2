import type { Command } from 'commander';
import type { Signal } from '../../../contract/sandboxes/exec.ts';
import { UsageError } from '../../failures/usage-error.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';

const SIGNALS: readonly Signal[] = [
  'SIGTERM',
  'SIGKILL',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGSTOP',
  'SIGCONT',
  'SIGWINCH',
];

/** Parses a signal: `SIGTERM`, `TERM` and `term` are equal. */
function signalOf(text: string): Signal {
  const name = text.toUpperCase().replace(/^(?:SIG)?/, 'SIG');
  const found = SIGNALS.find((signal) => signal === name);
  if (found === undefined)
    throw new UsageError(`There is no signal "${text}".`, `Choose one of: ${SIGNALS.join(', ')}.`);
  return found;
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'The signal goes to the process and all that it started. `sandboxer ps` shows the processes.',
  );
  command
    .argument('<id>', 'the sandbox')
    .argument('<process>', 'the process, as ps and exec --detach name it')
    .addOption(
      command
        .createOption('-s, --signal <name>', 'another signal than SIGTERM, such as KILL')
        .choices(SIGNALS)
        .argParser(signalOf)
        .default('SIGTERM'),
    )
    .action(async (id: string, process: string, { signal }: { readonly signal: Signal }) => {
      const { printer } = invocation;
      await (await invocation.client()).processes.signal(id, process, signal);
      printer.result({ sandbox_id: id, process_id: process, signal }, () => printer.line(process));
    });
}
