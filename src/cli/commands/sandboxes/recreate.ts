import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import { printState } from '../../output/sandbox-view.ts';

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .option('--no-wait', 'answer at once, before it is ready')
    .action(async (id: string, flags: { readonly wait: boolean }) => {
      const client = await invocation.client();
      const work = client.sandboxes.recreate(id, { wait: flags.wait ? 'ready' : 'none' });
      printState(invocation.printer, await invocation.progress(`Recreating ${id}`).during(work));
    });
}
