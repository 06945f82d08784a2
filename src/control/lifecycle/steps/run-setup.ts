import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { SetupStep } from '../../../core/lifecycle/setup-log.ts';
import type { Extension, ExtensionContext, Handle } from '../../../core/ports/extension.ts';
import type { SandboxSession } from '../../../core/ports/session.ts';
import type { Recipe } from '../../../core/recipe/recipe.ts';
import { Interrupted, Outrun } from '../edit/interruption.ts';
import { SetupOutput } from './setup-output.ts';

const TOLD_CHARACTERS = 2_000;

/** The sandbox that is set up, at its backend. */
export interface SetupPlace {
  readonly extension: Extension;
  readonly handle: Handle;
  readonly context: ExtensionContext;
}

/** The directory of the setup commands, and the state of their run. */
export interface SetupRun {
  readonly cwd: string | null;
  /** Values that must not be kept, should a command print them. */
  readonly secrets: readonly string[];
  now(): number;
  /** The finished steps, filled while the commands run, so that they are known after a timeout, too. */
  readonly steps: SetupStep[];
}

async function runOne(
  session: SandboxSession,
  command: string,
  { variables }: Recipe,
  run: SetupRun & { readonly signal: AbortSignal },
): Promise<SetupStep> {
  const { signal } = run;
  const output = new SetupOutput(run.secrets);
  const startedAt = run.now();
  const at = run.steps.length;
  const note = (exitCode: number | null, endedAt: number | null): SetupStep => {
    const { truncated } = output;
    const step = { command, output: output.text(), truncated, exitCode, startedAt, endedAt };
    run.steps[at] = step;
    return step;
  };
  note(null, null);
  try {
    const process = await session.spawn(
      {
        argv: ['/bin/sh', '-c', command],
        env: variables,
        cwd: run.cwd,
        user: null,
        timeoutSeconds: null,
        terminal: null,
        stdin: false,
        background: false,
      },
      { signal },
    );
    const stop = () => note(null, null);
    signal.addEventListener('abort', stop, { once: true });
    for await (const chunk of process.output) output.add(chunk);
    const { code } = await process.exit;
    signal.removeEventListener('abort', stop);
    return note(code, run.now());
  } catch (error) {
    note(null, run.now());
    throw error;
  }
}

/**
 * A failure while a setup command ran: the sandbox was reachable before, so that a time limit or a channel that the command
 * broke is the command's fault.
 */
export function setupFailure(error: unknown, steps: readonly SetupStep[]): unknown {
  const isOurs = error instanceof Interrupted || error instanceof Outrun;
  if (isOurs || (error instanceof SandboxerError && error.fault !== 'backend')) return error;
  const why = error instanceof SandboxerError ? error.detail : 'Its channel was lost.';
  const field = `setup.run[${steps.length - 1}]`;
  return new SandboxerError('SBX_SETUP_FAILED', `${field} did not end: ${why}`, {
    cause: error,
    creation: 'created',
    field,
  });
}

/** Runs the recipe's setup commands in order. The first that fails ends the establishment, with the end of its output. */
export async function runSetup(
  { extension, handle, context }: SetupPlace,
  recipe: Recipe,
  run: SetupRun,
): Promise<void> {
  const { signal } = context;
  const session = await extension.connect(handle, context);
  try {
    for (const [index, command] of recipe.setupRun.entries()) {
      const { exitCode, output } = await runOne(session, command, recipe, { ...run, signal });
      if (exitCode === 0) continue;
      throw new SandboxerError(
        'SBX_SETUP_FAILED',
        `setup.run[${index}] ended with ${exitCode}: ${output.slice(-TOLD_CHARACTERS).trim() || 'no output'}`,
        {
          creation: 'created',
          field: `setup.run[${index}]`,
        },
      );
    }
  } finally {
    await session.close();
  }
}
