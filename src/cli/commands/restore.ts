import type { Command } from 'commander';
import type { DeriveFlags } from '../args/derive-options.ts';
import { addDeriveOptions, deriveRequestOf } from '../args/derive-options.ts';
import { snapshotIdOf } from '../args/snapshot-id.ts';
import type { Invocation } from '../invocation.ts';
import { establishedText } from '../output/sandbox-view.ts';
import { establish } from '../terminal/establish.ts';

export function define(command: Command, invocation: Invocation): void {
  addDeriveOptions(command)
    .argument('<snapshot>', 'the id of the snapshot, or its name')
    .action(async (snapshot: string, flags: DeriveFlags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const startedAt = Date.now();
      const options = { wait: flags.wait ? 'ready' : 'none' } as const;
      const id = await snapshotIdOf(client, snapshot);
      const work = establish(client, options, (keyed) =>
        client.snapshots.restore(id, deriveRequestOf(flags), keyed),
      );
      const sandbox = await invocation.progress(`Restoring ${snapshot}`).during(work);
      printer.result(sandbox, () => {
        printer.line(sandbox.sandbox_id);
        printer.note(establishedText(sandbox, Date.now() - startedAt, Date.now()));
      });
    });
}
