import type { Command } from 'commander';
import type { ProviderKey } from '../../../contract/tenancy/provider-key.ts';
import { readInputFile } from '../../args/input-file.ts';
import { EXIT } from '../../failures/exit-code.ts';
import { UsageError } from '../../failures/usage-error.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

function columns(_rows: readonly ProviderKey[], now: number): Column<ProviderKey>[] {
  return [
    { title: 'KEY', value: (row) => row.provider_key_id },
    { title: 'EXTENSION', value: (row) => row.extension },
    { title: 'SCOPE', value: (row) => row.scope },
    { title: 'STATE', value: (row) => row.state },
    { title: 'ENDS IN', value: (row) => row.hint },
    { title: 'CHECKED', value: (row) => relativeTime(row.checked_at, now) },
    { title: 'LABEL', cuttable: true, value: (row) => row.label || '-' },
  ];
}

/** Reads the key from the input, never from the arguments, which every process of the machine can read. */
async function readSecret(file = '-'): Promise<string> {
  const secret = (await readInputFile(file)).trim();
  if (secret !== '') return secret;
  throw new UsageError('There is no key in the input.', 'Pipe it in, or name a file with --file.');
}

interface SetFlags {
  readonly platform?: true;
  readonly file?: string;
  readonly label?: string;
}

function defineSet(command: Command, invocation: Invocation): void {
  command
    .command('set')
    .description('Keep a key of a vendor, read from the standard input; another one replaces it')
    .argument('<extension>', 'such as ext.saas-stub')
    .option('--file <path>', 'read it from a file instead')
    .option('--platform', 'for every workspace without its own; its use is charged')
    .option('--label <text>', 'purpose of the key')
    .action(async (extension: string, flags: SetFlags) => {
      const { printer } = invocation;
      const key = await (await invocation.client()).providerKeys.set({
        extension,
        scope: flags.platform ? 'platform' : 'workspace',
        secret: await readSecret(flags.file),
        ...(flags.label === undefined ? {} : { label: flags.label }),
      });
      printer.result(key, () => printer.line(`${key.provider_key_id}  …${key.hint}  ${key.state}`));
    });
}

function defineOne(
  command: Command,
  invocation: Invocation,
  name: 'test' | 'disable' | 'delete',
  description: string,
): void {
  command
    .command(name)
    .description(description)
    .argument('<key>', 'its id')
    .action(async (id: string) => {
      const { printer } = invocation;
      const key = await (await invocation.client()).providerKeys[name](id);
      printer.result(key ?? { provider_key_id: id }, () => printer.line(key ? `${id}  ${key.state}` : id));
      if (name === 'test' && key?.state === 'refused') invocation.exitCode = EXIT.failed;
    });
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the keys of vendors, without their secrets',
    empty: 'There are no provider keys.',
    fetch: (client) => client.providerKeys.list(),
    name: (row) => row.provider_key_id,
    columns,
  });
  defineSet(command, invocation);
  defineOne(command, invocation, 'test', 'Ask the vendor whether it takes the key');
  defineOne(command, invocation, 'disable', 'Make nothing new with it');
  defineOne(command, invocation, 'delete', 'Forget it, when nothing made with it is left');
  command
    .command('rotate')
    .description('Put every stored secret under the server’s new master key')
    .action(async () => {
      const { printer } = invocation;
      const report = await (await invocation.client()).providerKeys.reseal();
      printer.result(report, () =>
        printer.line(`${report.resealed} moved, ${report.unchanged} were under it already`),
      );
    });
}
