import type { Command } from 'commander';
import { duration } from '../../args/numbers.ts';
import type { Pairs } from '../../args/pairs.ts';
import { pairs } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { byteText } from '../../output/amounts.ts';

interface Flags {
  readonly name?: string;
  readonly label?: Pairs;
  readonly retain?: string | number;
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .option('--name <name>', 'a name for it')
    .option('-l, --label <key=value>', 'label', pairs('label'))
    .option('--retain <duration>', 'delete it after this time', duration)
    .action(async (id: string, flags: Flags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const work = client.sandboxes.snapshot(id, {
        ...(flags.name === undefined ? {} : { name: flags.name }),
        ...(flags.label === undefined ? {} : { labels: { ...flags.label } }),
        ...(flags.retain === undefined ? {} : { retain: flags.retain }),
      });
      const snapshot = await invocation.progress(`Taking a snapshot of ${id}`).during(work);
      printer.result(snapshot, () => {
        printer.line(snapshot.snapshot_id);
        const size = snapshot.size_bytes === null ? '' : `, ${byteText(snapshot.size_bytes)}`;
        printer.note(`${snapshot.kind}, ${snapshot.state}${size}`);
      });
    });
}
