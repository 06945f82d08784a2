import type { Command } from 'commander';
import { duration, wholeNumber } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { relativeTime } from '../../output/relative-time.ts';

interface Flags {
  readonly public?: boolean;
  readonly expiresIn?: string | number;
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('<port>', 'where an HTTP service listens inside', wholeNumber)
    .option('--public', 'reachable without a token')
    .option('--expires-in <duration>', 'valid for this time', duration)
    .action(async (id: string, port: number, flags: Flags) => {
      const { printer } = invocation;
      const access = await (await invocation.client()).ports.open(id, {
        port,
        ...(flags.public === undefined ? {} : { public: flags.public }),
        ...(flags.expiresIn === undefined ? {} : { expires_in: flags.expiresIn }),
      });
      printer.result(access, () => {
        printer.line(access.url);
        printer.note(
          `${access.public ? 'public' : 'with its token'}, expires ${relativeTime(access.expires_at, Date.now())}`,
        );
      });
    });
}
