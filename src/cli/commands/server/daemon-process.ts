import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';

export function define(command: Command, invocation: Invocation): void {
  command.action(async () => {
    const { runDaemon } = await import('../../../main/daemon.ts');
    await runDaemon(invocation.env);
  });
}
