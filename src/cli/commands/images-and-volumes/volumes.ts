import type { Command } from 'commander';
import type { Volume } from '../../../contract/assets/volume.ts';
import { size } from '../../args/numbers.ts';
import { pairs } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { ageOf, relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { workspaceColumn } from '../../output/workspace-column.ts';

const sizeText = (size: number | null) => (size === null ? 'unlimited' : `${size} MiB`);

function columns(rows: readonly Volume[], now: number): Column<Volume>[] {
  return [
    { title: 'NAME', value: (row) => row.name },
    { title: 'ID', spare: true, value: (row) => row.volume_id },
    ...workspaceColumn(rows),
    { title: 'STATE', value: (row) => row.state },
    { title: 'EXTENSION', spare: true, value: (row) => row.extension },
    { title: 'SIZE', align: 'right', value: (row) => sizeText(row.size_mb) },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
    { title: 'MOUNTED BY', cuttable: true, value: (row) => row.mounted_by.join(',') || '-' },
  ];
}

function show(invocation: Invocation, volume: Volume): void {
  const { printer } = invocation;
  printer.result(volume, () =>
    printer.details([
      ['name', volume.name],
      ['id', volume.volume_id],
      ['state', volume.state],
      ['extension', volume.extension],
      ['size', sizeText(volume.size_mb)],
      ['mounted by', volume.mounted_by.join(', ') || 'no sandbox'],
      ['created', relativeTime(volume.created_at, Date.now())],
    ]),
  );
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the volumes',
    empty: 'There are no volumes.',
    fetch: (client) => client.volumes.list(),
    name: (row) => row.name,
    columns,
  });
  command
    .command('create')
    .description('Make a directory that outlives sandboxes')
    .argument('<name>', 'its name')
    .option('--size <size>', 'most it can hold, such as 2GB', size)
    .option('--extension <id>', 'the backend that keeps it')
    .option('-l, --label <key=value>', 'a label; may be repeated', pairs('label'))
    .action(
      async (
        name: string,
        flags: {
          readonly size?: string;
          readonly extension?: string;
          readonly label?: Record<string, string>;
        },
      ) => {
        const volume = await (await invocation.client()).volumes.create({
          name,
          ...(flags.size === undefined ? {} : { size_mb: flags.size }),
          ...(flags.extension === undefined ? {} : { extension: flags.extension }),
          ...(flags.label === undefined ? {} : { labels: flags.label }),
        });
        invocation.printer.result(volume, () => invocation.printer.line(volume.name));
      },
    );
  command
    .command('show')
    .description('Show one volume')
    .argument('<volume>', 'its name or id')
    .action(async (volume: string) =>
      show(invocation, await (await invocation.client()).volumes.get(volume)),
    );
  command
    .command('rm')
    .alias('delete')
    .description('Delete a volume with everything in it')
    .argument('<volume>', 'its name or id')
    .action(async (volume: string) => {
      await (await invocation.client()).volumes.delete(volume);
      invocation.printer.result({ deleted: volume }, () => invocation.printer.line(volume));
    });
}
