import { statSync } from 'node:fs';
import type { Command } from 'commander';
import type { Image } from '../../../contract/assets/image.ts';
import { packTree } from '../../../trees/pack-tree.ts';
import { openInputFile } from '../../args/input-file.ts';
import { list } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { byteText } from '../../output/amounts.ts';
import { ageOf, relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { workspaceColumn } from '../../output/workspace-column.ts';

function columns(rows: readonly Image[], now: number): Column<Image>[] {
  return [
    { title: 'NAME', value: (row) => row.name },
    ...workspaceColumn(rows),
    { title: 'DIGEST', value: (row) => row.digest?.slice(0, 19) ?? '-' },
    { title: 'STATE', value: (row) => row.state },
    { title: 'SOURCE', spare: true, value: (row) => row.source },
    { title: 'EXTENSION', spare: true, value: (row) => row.extension },
    { title: 'SIZE', align: 'right', value: (row) => byteText(row.size_bytes) },
    { title: 'SHARED', spare: true, value: (row) => (row.shared ? 'yes' : '-') },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
    { title: 'EXPIRES', value: (row) => relativeTime(row.expires_at, now) },
  ];
}

function show(invocation: Invocation, image: Image): void {
  const { printer } = invocation;
  const { config } = image;
  const words = (list: readonly string[]) => (list.length === 0 ? null : JSON.stringify(list));
  printer.result(image, () =>
    printer.details([
      ['id', image.image_id],
      ['reference', image.reference ?? image.name],
      ['state', image.state],
      ['source', image.source],
      ['extension', image.extension],
      ['architecture', image.architecture],
      ['size', byteText(image.size_bytes)],
      ['shared', image.shared ? 'with all workspaces' : null],
      ['user', config.user],
      ['workdir', config.workdir],
      ['entrypoint', words(config.entrypoint)],
      ['cmd', words(config.cmd)],
      [
        'env',
        Object.keys(config.env).length === 0
          ? null
          : Object.entries(config.env)
              .map((pair) => pair.join('='))
              .join('\n'),
      ],
      ['created', relativeTime(image.created_at, Date.now())],
      ['expires', image.expires_at && relativeTime(image.expires_at, Date.now())],
    ]),
  );
}

interface KeepFlags {
  readonly name: string;
  readonly shared?: boolean;
  readonly retain?: string;
  readonly extension?: string;
}

/** Streams a file as it is; a directory, such as an OCI layout, as a tar archive. */
async function archiveOf(path: string): Promise<AsyncIterable<Uint8Array>> {
  const isDirectory = path !== '-' && statSync(path, { throwIfNoEntry: false })?.isDirectory();
  return isDirectory ? packTree(path) : openInputFile(path);
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the images',
    empty: 'There are no images besides "host".',
    fetch: (client) => client.images.list(),
    name: ({ reference, name }) => reference ?? name,
    columns,
  });
  command
    .command('show')
    .description('Show one image')
    .argument('<image>', 'its name, name@digest, or id')
    .action(async (image: string) => show(invocation, await (await invocation.client()).images.get(image)));
  command
    .command('import')
    .description('Keep an image: a root file system, an OCI layout, or what docker save writes')
    .argument(
      '<archive>',
      'a tar archive (plain, gzip, zstd), the directory of an OCI layout, or - for stdin',
    )
    .requiredOption('--name <name>', 'what profiles call it')
    .option('--shared', 'for all workspaces')
    .option('--retain <duration>', 'delete it after this time')
    .option('--extension <id>', 'the backend that keeps it')
    .action(async (archive: string, { name, ...flags }: KeepFlags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const work = client.images.import(name, await archiveOf(archive), flags);
      const image = await invocation.progress(`Importing ${name}`).during(work);
      printer.result(image, () => {
        printer.line(image.reference ?? image.name);
        printer.note(`${byteText(image.size_bytes)}; name it as "image" in a profile`);
      });
    });
  command
    .command('build')
    .description('Make a Debian root file system on the server')
    .requiredOption('--name <name>', 'what profiles call it')
    .option('--suite <suite>', 'such as bookworm', 'stable')
    .option('--package <name>', 'install this one too; may be repeated', list)
    .option('--shared', 'for all workspaces')
    .option('--retain <duration>', 'delete it after this time')
    .option('--extension <id>', 'the backend that makes it')
    .action(async (flags: KeepFlags & { readonly suite: string; readonly package?: readonly string[] }) => {
      const { printer } = invocation;
      const { package: packages = [], ...rest } = flags;
      const work = (await invocation.client()).images.build({ ...rest, packages: [...packages] });
      const image = await invocation.progress(`Building ${flags.name}`).during(work);
      printer.result(image, () => printer.line(image.reference ?? image.name));
    });
  command
    .command('rm')
    .alias('delete')
    .description('Delete an image; what was made from it goes on')
    .argument('<image>', 'its name, name@digest, or id')
    .action(async (image: string) => {
      await (await invocation.client()).images.delete(image);
      invocation.printer.result({ deleted: image }, () => invocation.printer.line(image));
    });
}
