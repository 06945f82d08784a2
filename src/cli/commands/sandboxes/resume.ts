import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import { printState } from '../../output/sandbox-view.ts';

export function define(command: Command, invocation: Invocation): void {
  command.argument('<id>', 'the sandbox').action(async (id: string) => {
    const client = await invocation.client();
    const sandbox = await invocation.progress(`Resuming ${id}`).during(client.sandboxes.resume(id));
    printState(invocation.printer, sandbox);
  });
}
