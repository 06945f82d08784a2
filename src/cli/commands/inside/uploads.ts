import type { Command } from 'commander';
import type { Upload } from '../../../contract/assets/upload.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { list } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { byteText } from '../../output/amounts.ts';
import { ageOf, relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { workspaceColumn } from '../../output/workspace-column.ts';
import type { PackFlags } from '../../transfer/stage-path.ts';
import { stagePath } from '../../transfer/stage-path.ts';

function columns(rows: readonly Upload[], now: number): Column<Upload>[] {
  return [
    { title: 'ID', value: (row) => row.upload_id },
    ...workspaceColumn(rows),
    { title: 'SIZE', align: 'right', value: (row) => byteText(row.size_bytes) },
    { title: 'ENTRIES', align: 'right', value: (row) => String(row.entries) },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
    { title: 'EXPIRES', value: (row) => relativeTime(row.expires_at, now) },
  ];
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List uploads',
    empty: 'There are no uploads.',
    fetch: (client, { limit }: { readonly limit: number }) => client.uploads.list({ limit }).page(),
    name: (row) => row.upload_id,
    columns,
  }).option('-n, --limit <number>', 'at most so many', wholeNumber, 100);
  command
    .command('create')
    .description('Upload a directory or file, to be named as upload:<id> by later creates')
    .argument('<path>', 'a directory or file of this machine')
    .option('--with-git', 'also upload .git')
    .option('--with-secrets', 'also upload .env and other files that may hold secrets')
    .option('--with-secret <pattern>', 'upload those of them that match, as in .gitignore', list)
    .action(async (path: string, flags: PackFlags) => {
      const upload = await stagePath(invocation, await invocation.client(), path, { flags });
      invocation.printer.result(upload, () => {
        invocation.printer.line(upload.upload_id);
        invocation.printer.note(`${upload.entries} entries, ${byteText(upload.size_bytes)}`);
      });
    });
  command
    .command('entries')
    .description('Show what is in an upload')
    .argument('<upload>', 'its id')
    .action(async (id: string) => {
      for await (const entry of (await invocation.client()).uploads.entries(id)) {
        if (invocation.printer.json) invocation.printer.item(entry);
        else invocation.printer.line(entry.path);
      }
    });
  command
    .command('delete')
    .description('Delete an upload')
    .argument('<upload>', 'its id')
    .action(async (id: string) => {
      await (await invocation.client()).uploads.delete(id);
      invocation.printer.result({ upload_id: id, deleted: true }, () => invocation.printer.line(id));
    });
}
