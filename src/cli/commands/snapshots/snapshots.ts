import { createWriteStream } from 'node:fs';
import { lstat, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { Snapshot } from '../../../contract/assets/snapshot.ts';
import { openInputFile } from '../../args/input-file.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { snapshotIdOf } from '../../args/snapshot-id.ts';
import { UsageError } from '../../failures/usage-error.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import { byteText } from '../../output/amounts.ts';
import { ageOf, relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { workspaceColumn } from '../../output/workspace-column.ts';

function columns(rows: readonly Snapshot[], now: number): Column<Snapshot>[] {
  return [
    { title: 'ID', value: (row) => row.snapshot_id },
    ...workspaceColumn(rows),
    { title: 'NAME', cuttable: true, value: (row) => row.name ?? '-' },
    { title: 'STATE', value: (row) => row.state },
    { title: 'SANDBOX', value: (row) => row.sandbox_id },
    { title: 'KIND', spare: true, value: (row) => row.kind },
    { title: 'CAUSE', spare: true, value: (row) => row.cause },
    {
      title: 'SIZE',
      align: 'right',
      value: (row) => (row.size_bytes === null ? '-' : byteText(row.size_bytes)),
    },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
    { title: 'EXPIRES', value: (row) => relativeTime(row.expires_at, now) },
  ];
}

function show(invocation: Invocation, snapshot: Snapshot): void {
  const { printer } = invocation;
  const now = Date.now();
  printer.result(snapshot, () =>
    printer.details([
      ['id', snapshot.snapshot_id],
      ['name', snapshot.name],
      ['state', snapshot.state],
      ['kind', snapshot.kind],
      ['sandbox', `${snapshot.sandbox_id} (generation ${snapshot.generation})`],
      ['profile', `${snapshot.profile}@${snapshot.profile_version}`],
      ['extension', snapshot.extension],
      ['cause', snapshot.cause],
      ['digest', snapshot.digest],
      ['size', snapshot.size_bytes === null ? null : byteText(snapshot.size_bytes)],
      ['created', relativeTime(snapshot.created_at, now)],
      ['expires', snapshot.expires_at && relativeTime(snapshot.expires_at, now)],
      ['deleted', snapshot.deleted_at && relativeTime(snapshot.deleted_at, now)],
    ]),
  );
}

/** Checks the place of a new file before any request is sent. */
async function requirePlace(file: string, replaces: boolean): Promise<void> {
  const there = await lstat(file).catch(() => null);
  const directory = await stat(dirname(resolve(file))).catch(() => null);
  if (!directory?.isDirectory())
    throw new UsageError(`There is no directory ${dirname(file)}.`, 'Name a file in one that is there.');
  if (there && !there.isFile()) throw new UsageError(`${file} exists and is not a file.`, 'Name a new file.');
  if (there && !replaces)
    throw new UsageError(`There is a file ${file} already.`, 'Name another one, or replace it: --force.');
}

/** Writes the file; it appears under its name when it is complete. */
async function written(body: Readable, file: string): Promise<void> {
  const draft = `${file}.${process.pid}.part`;
  try {
    await pipeline(body, createWriteStream(draft, { flags: 'wx', mode: 0o600 }));
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List snapshots',
    empty: 'There are no snapshots.',
    fetch: (client, { sandbox, limit }: { readonly sandbox?: string; readonly limit: number }) =>
      client.snapshots.list({ sandbox, limit }).page(),
    name: (row) => row.snapshot_id,
    columns,
  })
    .option('--sandbox <id>', 'only of this sandbox')
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 100);
  command
    .command('show')
    .description('Show one snapshot')
    .argument('<snapshot>', 'its id or its name')
    .action(async (snapshot: string) => {
      const client = await invocation.client();
      show(invocation, await client.snapshots.get(await snapshotIdOf(client, snapshot)));
    });
  command
    .command('rename')
    .description('Name a snapshot; without a name, take it away')
    .argument('<snapshot>', 'its id or its name')
    .argument('[name]', 'the new name')
    .action(async (snapshot: string, name: string | undefined) => {
      const client = await invocation.client();
      const id = await snapshotIdOf(client, snapshot);
      show(invocation, await client.snapshots.rename(id, name ?? null));
    });
  command
    .command('export')
    .description('Write a snapshot to one file')
    .argument('<snapshot>', 'its id or its name')
    .argument('<file>', 'a path of this machine; - is the output')
    .option('--force', 'replace a file that is there')
    .action(async (snapshot: string, file: string, flags: { readonly force?: boolean }) => {
      const { printer } = invocation;
      const client = await invocation.client();
      if (file !== '-') await requirePlace(file, flags.force === true);
      const id = await snapshotIdOf(client, snapshot);
      const body = await client.snapshots.export(id);
      if (file === '-') return await pipeline(body, process.stdout, { end: false });
      await invocation.progress(`Exporting ${id}`).during(written(body, file));
      const { size } = await stat(file);
      printer.result({ snapshot_id: id, file, bytes: size }, () =>
        printer.note(`${byteText(size)} to ${file}`),
      );
    });
  command
    .command('import')
    .description('Make a snapshot of a file that an export wrote')
    .argument('<file>', 'a path of this machine; - is the input')
    .option('--profile <id>', 'what it is restored as (default: as the file says)')
    .option('--name <name>', 'a name for it')
    .action(async (file: string, flags: { readonly profile?: string; readonly name?: string }) => {
      const source = await openInputFile(file);
      const work = (await invocation.client()).snapshots.import(source, flags);
      show(invocation, await invocation.progress(`Importing ${file}`).during(work));
    });
  command
    .command('delete')
    .description('Delete a snapshot')
    .argument('<snapshot>', 'its id or its name')
    .action(async (name: string) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const snapshot = await client.snapshots.delete(await snapshotIdOf(client, name));
      printer.result(snapshot, () => {
        printer.line(snapshot.snapshot_id);
        printer.note(snapshot.state);
      });
    });
}
