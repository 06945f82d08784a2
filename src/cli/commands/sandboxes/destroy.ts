import type { Command } from 'commander';
import type { Sandbox } from '../../../contract/sandboxes/sandbox.ts';
import { exitCodeOf } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printError, reportOf } from '../../output/print-error.ts';

interface Flags {
  readonly wait: boolean;
}

/** Destroys each sandbox on its own: a failure does not stop the others. */
async function destroyAll(invocation: Invocation, ids: readonly string[], flags: Flags): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const what = ids.length === 1 ? ids[0] : `${ids.length} sandboxes`;
  const progress = invocation.progress(`Destroying ${what}`);
  const wait = flags.wait ? 'destroyed' : 'none';
  const outcomes = await progress.during(
    Promise.allSettled(ids.map((id) => client.sandboxes.destroy(id, { wait }))),
  );
  const gone: Sandbox[] = [];
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') gone.push(outcome.value);
    else invocation.exitCode = Math.max(invocation.exitCode, exitCodeOf(outcome.reason, false));
  }
  const errors = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
  );
  if (printer.json) {
    const problems = errors.map((error) => reportOf(error).problem);
    if (ids.length === 1) printer.document(gone[0] ?? { error: problems[0] });
    else printer.document({ items: gone, errors: problems });
    return;
  }
  for (const sandbox of gone) {
    printer.line(sandbox.sandbox_id);
    if (sandbox.state !== 'destroyed') printer.note(`${sandbox.sandbox_id} is ${sandbox.state}`);
  }
  for (const error of errors) printError(error, printer);
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id...>', 'the sandboxes')
    .option('--no-wait', 'do not wait until they are gone')
    .action((ids: string[], flags: Flags) => destroyAll(invocation, ids, flags));
}
