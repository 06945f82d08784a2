import type { Command } from 'commander';
import type { ApiKey, KeyScope } from '../../../contract/tenancy/tenancy.ts';
import { choice, choices } from '../../args/choices.ts';
import { duration } from '../../args/numbers.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

export const KEY_SCOPES: readonly KeyScope[] = [
  'read',
  'sandboxes',
  'profiles',
  'credits',
  'billing',
  'keys',
  'webhooks',
  'server',
];

interface CreateFlags {
  readonly actor?: 'adm' | 'agt' | 'atm';
  readonly scope?: readonly KeyScope[];
  readonly expiresIn?: string | number;
  readonly inWorkspace?: string;
}

function stateOf(key: ApiKey, now: number): string {
  if (key.revoked_at !== null) return 'revoked';
  return key.expires_at !== null && Date.parse(key.expires_at) <= now ? 'expired' : 'valid';
}

function columns(_rows: readonly ApiKey[], now: number): Column<ApiKey>[] {
  return [
    { title: 'KEY', value: (row) => row.key_id },
    { title: 'NAME', cuttable: true, value: (row) => row.name },
    { title: 'STATE', value: (row) => stateOf(row, now) },
    { title: 'ACTOR', value: (row) => row.actor },
    { title: 'SCOPES', spare: true, cuttable: true, value: (row) => row.scopes.join(',') },
    { title: 'WORKSPACE', spare: true, value: (row) => row.workspace_id },
    { title: 'EXPIRES', value: (row) => relativeTime(row.expires_at, now) },
    { title: 'USED', value: (row) => relativeTime(row.last_used_at, now) },
  ];
}

function printSecret(printer: Printer, key: ApiKey & { readonly secret: string }): void {
  printer.result(key, () => {
    printer.line(key.secret);
    printer.note(`${key.key_id}: keep the secret, it is not shown again`);
  });
}

export function define(command: Command, invocation: Invocation): void {
  const create = command
    .command('create')
    .description('Make a key; its secret is shown this once')
    .argument('<name>', 'purpose of the key');
  choice(create, '--actor <actor>', {
    description: 'adm (a person), agt (an agent) or atm (automation)',
    values: ['adm', 'agt', 'atm'],
  });
  choices(create, '--scope <scope>', `${KEY_SCOPES.join(', ')}; may be repeated`, KEY_SCOPES);
  create
    .option('--expires-in <duration>', 'not valid after this time', duration)
    .option('--in-workspace <id>', 'for this workspace')
    .action(async (name: string, flags: CreateFlags) => {
      const { printer } = invocation;
      const key = await (await invocation.client()).keys.create({
        name,
        ...(flags.actor === undefined ? {} : { actor: flags.actor }),
        ...(flags.scope === undefined ? {} : { scopes: [...flags.scope] }),
        ...(flags.expiresIn === undefined ? {} : { expires_in: flags.expiresIn }),
        ...(flags.inWorkspace === undefined ? {} : { workspace_id: flags.inWorkspace }),
      });
      printSecret(printer, key);
    });
  defineList(command, invocation, {
    description: 'List the keys',
    empty: 'There are no keys.',
    fetch: (client) => client.keys.list(),
    name: (row) => row.key_id,
    columns,
  });
  command
    .command('rotate')
    .description('Make a successor with the same rights')
    .argument('<key>', 'the id of the key')
    .option('--overlap <duration>', 'how long the old key goes on working', duration)
    .action(async (id: string, flags: { readonly overlap?: string | number }) => {
      const { printer } = invocation;
      const request = flags.overlap === undefined ? {} : { overlap: flags.overlap };
      const key = await (await invocation.client()).keys.rotate(id, request);
      printSecret(printer, key);
    });
  command
    .command('revoke')
    .description('Revoke a key and the keys it made, from this moment on')
    .argument('<key>', 'the id of the key')
    .option('--keep-made', 'leave the keys that it made as they are')
    .action(async (id: string, flags: { readonly keepMade?: boolean }) => {
      const { printer } = invocation;
      const options = flags.keepMade === true ? { keepMade: true } : {};
      const key = await (await invocation.client()).keys.revoke(id, options);
      printer.result(key, () => printer.line(key.key_id));
    });
}
