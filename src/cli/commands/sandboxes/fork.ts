import type { Command } from 'commander';
import type { DeriveFlags } from '../../args/derive-options.ts';
import { addDeriveOptions } from '../../args/derive-options.ts';
import { deriveSandbox } from '../../establish/derive-sandbox.ts';
import type { Invocation } from '../../invocation/invocation.ts';

export function define(command: Command, invocation: Invocation): void {
  addDeriveOptions(command)
    .argument('<id>', 'the sandbox to fork')
    .action((id: string, flags: DeriveFlags) =>
      deriveSandbox(invocation, `Forking ${id}`, flags, (client, request, options) =>
        client.sandboxes.fork(id, request, options),
      ),
    );
}
