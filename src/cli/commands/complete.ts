import type { Command } from 'commander';
import { candidatesFor } from '../completion/candidates.ts';
import type { Invocation } from '../invocation.ts';
import { plainText } from '../output/plain-text.ts';
import { clientOfRunning } from '../running-server.ts';

/** Somebody waits for the key to have an effect. */
const TIME_LIMIT_MS = 1_000;

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('[words...]', 'the line behind `sandboxer`, up to the cursor')
    .action(async (words: string[]) => {
      const { printer, env, options } = invocation;
      const found = await candidatesFor(words, (given) =>
        clientOfRunning(
          {
            url: given.get('--url') ?? options.url,
            key: given.get('--key') ?? options.key,
            workspace: given.get('--workspace') ?? options.workspace,
          },
          env,
          TIME_LIMIT_MS,
        ),
      );
      printer.result({ items: found }, () => {
        for (const { value, description } of found)
          printer.line(`${plainText(value)}\t${plainText(description) || value}`);
      });
    });
}
