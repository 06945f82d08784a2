import type { Command } from 'commander';
import { duration } from '../args/numbers.ts';
import type { Invocation } from '../invocation.ts';
import { relativeTime } from '../output/relative-time.ts';

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('<ttl>', 'the new deadline is now + this, such as 2h', duration)
    .action(async (id: string, ttl: string | number) => {
      const { printer } = invocation;
      const sandbox = await (await invocation.client()).sandboxes.extend(id, ttl);
      printer.result(sandbox, () => {
        printer.line(sandbox.sandbox_id);
        printer.note(`expires ${relativeTime(sandbox.expires_at, Date.now())}, at ${sandbox.expires_at}`);
      });
    });
}
