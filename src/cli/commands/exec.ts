import type { Command } from 'commander';
import type { Signal } from '../../contract/exec.ts';
import { addNotes } from '../command-notes.ts';
import type { Invocation } from '../invocation.ts';
import type { ExecFlags } from '../terminal/exec-options.ts';
import { addExecOptions, argvOf, execRequestOf } from '../terminal/exec-options.ts';
import { exitCodeAfter, onInterrupts } from '../terminal/interrupts.ts';
import { exitCodeWithout } from '../terminal/lost-output.ts';
import { exitCodeFrom, runInSandbox } from '../terminal/run-in-sandbox.ts';
import { UsageError } from '../usage-error.ts';

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
  const started = await client.background(id, execRequestOf(argv, flags));
  printer.result(started, () => {
    printer.line(started.process_id);
    printer.note(`its output: sandboxer logs ${id} ${started.process_id} --follow`);
  });
}

/** Runs a program there as if it ran here: input, output, signals, exit code. */
export async function execInForeground(
  invocation: Invocation,
  id: string,
  command: string | string[],
  flags: Flags & { readonly stdin: boolean },
): Promise<number> {
  const client = await invocation.client();
  const abort = new AbortController();
  let ended: number | null = null;
  let kill: ((signal: Signal) => Promise<void>) | null = null;
  const end = (code: number) => {
    ended ??= code;
    abort.abort(new Error('The program is no longer listened to.'));
  };
  invocation.onOutputLost = (error) => end(exitCodeWithout(error, invocation.printer));
  const release = onInterrupts({
    first: (signal) => {
      if (kill) kill(signal).catch(() => end(exitCodeAfter(signal)));
      else end(exitCodeAfter(signal));
    },
    again: (signal) => end(exitCodeAfter(signal)),
  });
  try {
    const exit = await runInSandbox(invocation, client, {
      sandboxId: id,
      request: execRequestOf(command, flags),
      stdin: flags.stdin,
      tty: flags.tty === true,
      signal: abort.signal,
      onStarted: (way) => {
        kill = way;
      },
    });
    return exitCodeFrom(exit, invocation);
  } catch (error) {
    if (ended === null) throw error;
    return ended;
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
    .action(async (id: string, words: string[], flags: Flags) => {
      const argv = argvOf(words);
      if (argv.length === 0)
        throw new UsageError('There is no program to run.', `Write sandboxer exec ${id} -- <program>.`);
      if (flags.detach) return startInBackground(invocation, id, argv, flags);
      const stdin = flags.interactive === true || flags.tty === true;
      invocation.exitCode = await execInForeground(invocation, id, argv, { ...flags, stdin });
    });
}
