import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import type { ExecFlags } from '../../terminal/exec-options.ts';
import { addExecOptions } from '../../terminal/exec-options.ts';
import { isTerminal } from '../../terminal/take-terminal.ts';
import { execInForeground } from './exec.ts';

/** Command that starts the best shell of the sandbox. */
const SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi';

export function define(command: Command, invocation: Invocation): void {
  addExecOptions(command)
    .argument('<id>', 'the sandbox')
    .action(async (id: string, flags: ExecFlags) => {
      const all = { ...flags, tty: isTerminal(), stdin: true };
      invocation.exitCode = await execInForeground(invocation, id, ['/bin/sh', '-c', SHELL], all);
    });
}
