import type { Command } from 'commander';
import type { DeriveFlags } from '../../args/derive-options.ts';
import { addDeriveOptions } from '../../args/derive-options.ts';
import { snapshotIdOf } from '../../args/snapshot-id.ts';
import { deriveSandbox } from '../../establish/derive-sandbox.ts';
import type { Invocation } from '../../invocation/invocation.ts';

export function define(command: Command, invocation: Invocation): void {
  addDeriveOptions(command)
    .argument('<snapshot>', 'the id of the snapshot, or its name')
    .action((snapshot: string, flags: DeriveFlags) =>
      deriveSandbox(invocation, `Restoring ${snapshot}`, flags, async (client, request, options) =>
        client.snapshots.restore(await snapshotIdOf(client, snapshot), request, options),
      ),
    );
}
