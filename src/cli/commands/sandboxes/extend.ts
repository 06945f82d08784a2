import type { Command } from 'commander';
import type { ExtendedSandbox } from '../../../contract/sandboxes/sandbox.ts';
import { duration } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { relativeTime, shortDuration } from '../../output/relative-time.ts';

/** Describes a deadline that was cut, or that is earlier than before; empty for a deadline that moved as expected. */
function surprises(
  { sandbox_id: id, profile, expires_at, extended }: ExtendedSandbox,
  asked: string,
): string[] {
  const cut = extended.limited
    ? [`${asked} is more than is left of the longest life of ${profile}, which ends then: it was cut to that`]
    : [];
  const lost = (Date.parse(extended.previous_expires_at) - Date.parse(expires_at)) / 1000;
  if (lost < 1) return cut;
  const before = shortDuration((Date.parse(extended.previous_expires_at) - Date.now()) / 1000);
  const undo = `"sandboxer extend ${id} ${before}" restores it`;
  return [...cut, `that is ${shortDuration(lost)} earlier than before, as the ttl counts from now: ${undo}`];
}

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
        for (const surprise of surprises(sandbox, String(ttl))) printer.note(surprise);
      });
    });
}
