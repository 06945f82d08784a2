import type { Command } from 'commander';
import { SandboxerApiError } from '../../client/api-error.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { ExecInput, Signal } from '../../contract/exec.ts';
import type { CreateFlags } from '../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../args/create-options.ts';
import { addStageOptions } from '../args/stage-options.ts';
import { addNotes } from '../command-notes.ts';
import { createWatched } from '../create-watched.ts';
import type { Invocation } from '../invocation.ts';
import { establishedText } from '../output/sandbox-view.ts';
import { OwnSandbox } from '../own-sandbox.ts';
import type { ExecFlags } from '../terminal/exec-options.ts';
import { addExecOptions, argvOf, execRequestOf } from '../terminal/exec-options.ts';
import type { Interrupt } from '../terminal/interrupts.ts';
import { exitCodeAfter, onInterrupts } from '../terminal/interrupts.ts';
import { exitCodeWithout } from '../terminal/lost-output.ts';
import { exitCodeFrom, runInSandbox } from '../terminal/run-in-sandbox.ts';
import { isTerminal } from '../terminal/take-terminal.ts';
import { rememberMirror } from '../transfer/mirror-state.ts';
import type { StageFlags } from '../transfer/stage-inputs.ts';
import { stageInputs } from '../transfer/stage-inputs.ts';
import type { WorkdirFlags } from '../upload-workdir.ts';
import { requestWithWorkdir, requireDirectory, uploadWorkdir } from '../upload-workdir.ts';

interface Flags extends CreateFlags, ExecFlags, WorkdirFlags, StageFlags {
  readonly keep?: boolean;
  readonly tty?: boolean;
  readonly interactive?: boolean;
}

/** What happens to the run from outside: signals, and a reader that left. */
class RunControl {
  readonly #abort = new AbortController();
  #kill: ((signal: Signal) => Promise<void>) | null = null;
  #exitCode: number | null = null;

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** What to end with when the run was ended from outside. */
  get exitCode(): number | null {
    return this.#exitCode;
  }

  started(kill: (signal: Signal) => Promise<void>): void {
    this.#kill = kill;
  }

  /** The first Ctrl-C is the program's; before there is one, and for the other signals, it is ours. */
  first(signal: Interrupt): void {
    if (signal === 'SIGINT' && this.#kill) this.#kill('SIGINT').catch(() => this.end(exitCodeAfter(signal)));
    else this.end(exitCodeAfter(signal));
  }

  end(exitCode: number): void {
    this.#exitCode ??= exitCode;
    this.#abort.abort(new Error('The run was ended.'));
  }
}

/** It was refused before anything ran: nobody insisted on a terminal, so that it can do without. */
function hasNoTerminals(error: unknown): boolean {
  return error instanceof SandboxerApiError && error.code === 'SBX_UNSUPPORTED' && error.field === 'tty';
}

async function execute(
  invocation: Invocation,
  client: SandboxerClient,
  own: OwnSandbox,
  command: ExecInput['command'],
  flags: Flags,
  control: RunControl,
): Promise<number> {
  const { printer } = invocation;
  const { signal } = control;
  const { id } = own;
  const startedAt = Date.now();
  const plain = createRequestOf({ ...flags, id });
  const staged = await stageInputs(invocation, async () => client, plain, flags, signal);
  const withWorkdir = await requestWithWorkdir(invocation, client, staged, flags, signal);
  const request = withWorkdir ?? staged;
  const progress = invocation.progress(`Creating a sandbox from ${request.profile ?? 'the canary'}`);
  const sandbox = await own.make(request, (marked) => createWatched(client, marked, { signal }, progress));
  if (flags.mirror !== undefined && flags.keep) rememberMirror(invocation.env, sandbox, flags);
  if (printer.json) printer.item({ type: 'sandbox', sandbox });
  else if (flags.keep) printer.note(`${id}: ${establishedText(sandbox, Date.now() - startedAt, Date.now())}`);
  if (flags.workdir !== undefined && withWorkdir === null)
    await uploadWorkdir(invocation, client, id, flags, signal);
  const runIt = (tty: boolean) =>
    runInSandbox(invocation, client, {
      sandboxId: id,
      request: execRequestOf(command, flags),
      stdin: tty || flags.interactive === true || process.stdin.isTTY !== true,
      tty,
      signal,
      onStarted: (kill) => control.started(kill),
    });
  const tty = flags.tty ?? (isTerminal() && !printer.json);
  const exit = await runIt(tty).catch((error: unknown) => {
    if (flags.tty === undefined && hasNoTerminals(error)) return runIt(false);
    throw error;
  });
  return exitCodeFrom(exit, invocation);
}

async function run(invocation: Invocation, words: readonly string[], flags: Flags): Promise<number> {
  if (flags.workdir !== undefined) await requireDirectory(flags.workdir);
  const client = await invocation.client();
  const own = new OwnSandbox(flags.id);
  const control = new RunControl();
  invocation.onOutputLost = (error) => control.end(exitCodeWithout(error, invocation.printer));
  const release = onInterrupts({
    first: (signal) => control.first(signal),
    again: (signal) => control.end(exitCodeAfter(signal)),
  });
  try {
    return await execute(invocation, client, own, argvOf(words), flags, control);
  } catch (error) {
    if (control.exitCode === null) throw error;
    return control.exitCode;
  } finally {
    if (!flags.keep) await own.destroy(client, invocation.printer);
    release();
  }
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'Ends with the exit code of the program; 125 when sandboxer failed, 126 and 127 as a shell has them.',
    'In a terminal, keys are the program’s, Ctrl-C and Ctrl-Z included. Otherwise Ctrl-C interrupts it, and a second one destroys the sandbox.',
  );
  addExecOptions(addStageOptions(addCreateOptions(command)))
    .argument('<program...>', 'the program and its arguments')
    .passThroughOptions()
    .option('--workdir <directory>', 'upload this directory first, without what its ignore files name')
    .option('--keep', 'do not destroy the sandbox')
    .option('-t, --tty', 'in a terminal, as it is where input and output are one')
    .option('-T, --no-tty', 'not in a terminal')
    .option('-i, --interactive', 'pass input on also without a terminal inside; what is piped in always is')
    .action(async (words: string[], flags: Flags) => {
      invocation.exitCode = await run(invocation, words, flags);
    });
}
