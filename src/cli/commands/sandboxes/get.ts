import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import { printSandbox } from '../../output/sandbox-view.ts';

export function define(command: Command, invocation: Invocation): void {
  command.argument('<id>', 'the sandbox').action(async (id: string) => {
    const { printer } = invocation;
    const sandbox = await (await invocation.sandboxes()).get(id);
    printer.result(sandbox, () => printSandbox(printer, sandbox, Date.now()));
  });
}
