import type { Command } from 'commander';
import { UsageError } from '../../failures/usage-error.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import type { ExecFlags } from '../../terminal/exec-options.ts';
import { addExecOptions, argvOf, execRequestOf, withLateOptions } from '../../terminal/exec-options.ts';
import { ProgramControl } from '../../terminal/program-control.ts';
import { runInSandbox } from '../../terminal/run-in-sandbox.ts';
import { terminalSize } from '../../terminal/take-terminal.ts';

interface Flags extends ExecFlags {
  readonly tty?: boolean;
  readonly interactive?: boolean;
  readonly detach?: boolean;
}

async function startInBackground(
  invocation: Invocation,
  id: string,
  argv: string[],
  flags: Flags,
): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const started = await client.background(id, {
    ...execRequestOf(argv, flags),
    ...(flags.tty === true ? { tty: terminalSize() } : {}),
    ...(flags.interactive === true ? { stdin_open: true } : {}),
  });
  printer.result(started, () => {
    printer.line(started.process_id);
    printer.note(`its output: sandboxer logs ${id} ${started.process_id} --follow`);
    printer.note(`to end it: sandboxer kill ${id} ${started.process_id}`);
  });
}

/** Runs a program in the sandbox as if it ran here: input, output, signals, exit code. */
export async function execInForeground(
  invocation: Invocation,
  id: string,
  command: string | string[],
  flags: Flags & { readonly stdin: boolean },
): Promise<number> {
  const client = await invocation.client();
  const control = new ProgramControl(invocation);
  const release = control.listen();
  try {
    return await control.during(() =>
      runInSandbox(invocation, client, {
        sandboxId: id,
        request: execRequestOf(command, flags),
        stdin: flags.stdin,
        tty: flags.tty === true,
        signal: control.signal,
        onStarted: (kill) => control.started(kill),
      }),
    );
  } finally {
    release();
  }
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'Ends with the exit code of the program; 125 when sandboxer failed, 126 and 127 as a shell has them.',
  );
  addExecOptions(command)
    .argument('<id>', 'the sandbox')
    .argument('[program...]', 'the program and its arguments')
    .passThroughOptions()
    .option('-i, --interactive', 'pass our input on')
    .option('-t, --tty', 'in a terminal')
    .option('-d, --detach', 'in the background: prints the id of the process')
    .action(async (id: string, words: string[], given: Flags) => {
      const argv = argvOf(withLateOptions(command, words));
      const flags = { ...given, ...command.opts<Flags>() };
      if (argv.length === 0)
        throw new UsageError('There is no program to run.', `Write sandboxer exec ${id} -- <program>.`);
      if (flags.detach) return startInBackground(invocation, id, argv, flags);
      const stdin = flags.interactive === true || flags.tty === true;
      invocation.exitCode = await execInForeground(invocation, id, argv, { ...flags, stdin });
    });
}
