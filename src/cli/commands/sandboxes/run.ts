import type { Command } from 'commander';
import type { SandboxerClient } from '../../../client/sandboxer-client.ts';
import { SandboxerApiError } from '../../../client/transport/api-error.ts';
import type { ExecInput, ExitStatus } from '../../../contract/sandboxes/exec.ts';
import type { CreateFlags } from '../../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../../args/create-options.ts';
import { addStageOptions } from '../../args/stage-options.ts';
import { createWatched } from '../../establish/create-watched.ts';
import { OwnSandbox } from '../../establish/own-sandbox.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { establishedText } from '../../output/sandbox-view.ts';
import type { ExecFlags } from '../../terminal/exec-options.ts';
import { addExecOptions, argvOf, execRequestOf } from '../../terminal/exec-options.ts';
import { ProgramControl } from '../../terminal/program-control.ts';
import { runInSandbox } from '../../terminal/run-in-sandbox.ts';
import { isTerminal } from '../../terminal/take-terminal.ts';
import { rememberMirror } from '../../transfer/mirror-state.ts';
import { stageForCreate } from '../../transfer/stage-for-create.ts';
import type { StageFlags } from '../../transfer/stage-inputs.ts';
import type { WorkdirFlags } from '../../transfer/upload-workdir.ts';
import { requestWithWorkdir, requireDirectory, uploadWorkdir } from '../../transfer/upload-workdir.ts';

interface Flags extends CreateFlags, ExecFlags, WorkdirFlags, StageFlags {
  readonly keep?: boolean;
  readonly tty?: boolean;
  readonly interactive?: boolean;
}

/** Default profile: an image as it is, with a long life; the canary is a test of the machine. */
const PROFILE = 'profile.run';

/** Returns whether a terminal was refused before anything ran; it is optional here. */
function hasNoTerminals(error: unknown): boolean {
  return error instanceof SandboxerApiError && error.code === 'SBX_UNSUPPORTED' && error.field === 'tty';
}

interface Execution {
  readonly command: ExecInput['command'];
  readonly flags: Flags;
  readonly control: ProgramControl;
}

async function execute(
  invocation: Invocation,
  client: SandboxerClient,
  own: OwnSandbox,
  { command, flags, control }: Execution,
): Promise<ExitStatus> {
  const { printer } = invocation;
  const { signal } = control;
  const { id } = own;
  const startedAt = Date.now();
  const plain = createRequestOf({ profile: PROFILE, ...flags });
  const staged = { ...(await stageForCreate(invocation, client, plain, { flags, signal })), id };
  const withWorkdir = await requestWithWorkdir(invocation, client, staged, { flags, signal });
  const request = withWorkdir ?? staged;
  const progress = invocation.progress(`Creating a sandbox from ${request.profile}`);
  const sandbox = await own.make(request, (marked) => createWatched(client, marked, { signal }, progress));
  if (flags.mirror !== undefined && flags.keep) rememberMirror(invocation.env, sandbox, flags);
  if (printer.json) printer.item({ type: 'sandbox', sandbox });
  else if (flags.keep) printer.note(`${id}: ${establishedText(sandbox, Date.now() - startedAt, Date.now())}`);
  if (flags.workdir !== undefined && withWorkdir === null)
    await uploadWorkdir(invocation, client, id, { flags, signal });
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
  return runIt(tty).catch((error: unknown) => {
    if (flags.tty === undefined && hasNoTerminals(error)) return runIt(false);
    throw error;
  });
}

async function run(invocation: Invocation, words: readonly string[], flags: Flags): Promise<number> {
  if (flags.workdir !== undefined) await requireDirectory(flags.workdir);
  const client = await invocation.client();
  const own = new OwnSandbox(flags.id);
  const control = new ProgramControl(invocation);
  const release = control.listen();
  try {
    return await control.during(() =>
      execute(invocation, client, own, { command: argvOf(words), flags, control }),
    );
  } finally {
    if (!flags.keep) await own.destroy(client, invocation.printer);
    release();
  }
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'Ends with the exit code of the program; 125 when sandboxer failed, 126 and 127 as a shell has them.',
    'Without --profile it is profile.run: nothing is put into the image, no network, at most 24 hours (--ttl, up to 7d).',
    'In a terminal, keys are the program’s, Ctrl-C and Ctrl-Z included. Otherwise signals are passed on to it, and a second Ctrl-C (or other interrupt) destroys the sandbox.',
  );
  addExecOptions(addStageOptions(addCreateOptions(command)))
    .argument('<program...>', 'the program and its arguments')
    .passThroughOptions()
    .option('--workdir <directory>', 'upload this directory first, without what its ignore files name')
    .option('--keep', 'do not destroy the sandbox')
    .option('-t, --tty', 'allocate a terminal (default when stdin and stdout are one)')
    .option('-T, --no-tty', 'not in a terminal')
    .option('-i, --interactive', 'forward stdin, also without a terminal; piped stdin is always forwarded')
    .action(async (words: string[], flags: Flags) => {
      invocation.exitCode = await run(invocation, words, flags);
    });
}
