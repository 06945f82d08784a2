import type { Command } from 'commander';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/table.ts';
import type { Invocation } from './invocation.ts';

/** Answer of a server to a list request. */
interface Found<Row> {
  readonly items: readonly Row[];
  readonly next_cursor?: string | null;
}

/** Printing of a list of one kind. */
export interface Listing<Row> {
  /** Message for a person, when the list is empty. */
  readonly empty: string;
  columns(rows: readonly Row[], now: number, printer: Printer): readonly Column<Row>[];
  /** Name that other commands call an item by: all that `--quiet` prints. */
  name(row: Row): string;
}

/** Prints the answer as it is for a program; names with `--quiet`; for a person a table. */
export function printList<Row>(printer: Printer, found: Found<Row>, listing: Listing<Row>): void {
  const { items, next_cursor = null } = found;
  printer.result(found, () => {
    if (printer.quiet) for (const row of items) printer.line(listing.name(row));
    else if (items.length === 0) printer.note(listing.empty);
    else printer.table(listing.columns(items, Date.now(), printer), items);
    if (next_cursor !== null) printer.note(`There are more: raise --limit (${items.length}).`);
  });
}

interface ListCommand<Row, Flags> extends Listing<Row> {
  readonly description: string;
  fetch(client: SandboxerClient, flags: Flags): Promise<Found<Row>>;
}

/** Command `sandboxer things list`, which is also `sandboxer things` alone. */
export function defineList<Row, Flags = unknown>(
  command: Command,
  invocation: Invocation,
  list: ListCommand<Row, Flags>,
): Command {
  return command
    .command('list', { isDefault: true })
    .description(list.description)
    .action(async (flags: Flags) => {
      printList(invocation.printer, await list.fetch(await invocation.client(), flags), list);
    });
}
