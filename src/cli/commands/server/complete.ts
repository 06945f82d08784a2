import type { Command } from 'commander';
import type { Connect } from '../../completion/candidates.ts';
import { candidatesFor } from '../../completion/candidates.ts';
import type { CommandTable } from '../../invocation/command-entry.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { clientOfRunning } from '../../invocation/running-server.ts';
import { plainText } from '../../output/plain-text.ts';

/** A user waits for the key to have an effect. */
const TIME_LIMIT_MS = 1_000;

export function define(command: Command, invocation: Invocation, table: CommandTable): void {
  command
    .argument('[words...]', 'the line behind `sandboxer`, up to the cursor')
    .action(async (words: string[]) => {
      const { printer, env, options } = invocation;
      const connect: Connect = (given) =>
        clientOfRunning(
          {
            url: given.get('--url') ?? options.url,
            key: given.get('--key') ?? options.key,
            workspace: given.get('--workspace') ?? options.workspace,
          },
          env,
          TIME_LIMIT_MS,
        );
      const found = await candidatesFor(words, { table, connect });
      printer.result({ items: found }, () => {
        for (const { value, description } of found)
          printer.line(`${plainText(value)}\t${plainText(description) || value}`);
      });
    });
}
