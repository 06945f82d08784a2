import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import { execInForeground } from './exec.ts';
import { RUN_SSHD } from './ssh-inside.ts';

export function define(command: Command, invocation: Invocation): void {
  command.argument('<id>', 'the sandbox').action(async (id: string) => {
    invocation.exitCode = await execInForeground(invocation, id, ['/bin/sh', '-c', RUN_SSHD], {
      stdin: true,
    });
  });
}
