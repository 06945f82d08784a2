import type { Command } from 'commander';
import type { Sandboxes, SandboxFilter } from '../../../client/resources/sandboxes.ts';
import type { Sandbox } from '../../../contract/sandboxes/sandbox.ts';
import type { SandboxState } from '../../../contract/values/state.ts';
import { choices } from '../../args/choices.ts';
import { wholeNumber } from '../../args/numbers.ts';
import type { Pairs } from '../../args/pairs.ts';
import { pairs } from '../../args/pairs.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import { sandboxColumns } from '../../output/sandbox-view.ts';

interface Flags {
  readonly all?: boolean;
  readonly state?: readonly SandboxState[];
  readonly profile?: string;
  readonly extension?: string;
  readonly label?: Pairs;
  readonly harness?: string;
  readonly externalId?: string;
  readonly limit: number;
  readonly watch?: boolean;
}

export const NOT_DESTROYED: readonly SandboxState[] = [
  'requested',
  'provisioning',
  'ready',
  'active',
  'paused',
  'expired',
  'failed',
  'destroying',
];
const LARGEST_PAGE = 500;
const CLEAR_SCREEN = '\x1b[H\x1b[2J\x1b[3J';

function filterOf(flags: Flags): SandboxFilter {
  return {
    state: flags.state ?? (flags.all ? undefined : NOT_DESTROYED),
    profile: flags.profile,
    extension: flags.extension,
    labels: flags.label,
    harness: flags.harness,
    externalId: flags.externalId,
    limit: Math.min(flags.limit, LARGEST_PAGE),
  };
}

async function fetchPage(sandboxes: Sandboxes, flags: Flags) {
  const found = sandboxes.list(filterOf(flags));
  const first = await found.page();
  if (flags.limit <= LARGEST_PAGE || first.next_cursor === null) return first;
  return { items: await found.all(flags.limit), next_cursor: null };
}

function print(
  invocation: Invocation,
  page: { items: readonly Sandbox[]; next_cursor: string | null },
): void {
  printList(invocation.printer, page, {
    empty: 'There are no sandboxes.',
    name: (row) => row.sandbox_id,
    columns: sandboxColumns,
  });
}

/** Prints the list again at every event. */
async function watch(invocation: Invocation, flags: Flags): Promise<void> {
  const client = await invocation.client();
  const show = async () => {
    const page = await fetchPage(client.sandboxes, flags);
    if (process.stdout.isTTY && !invocation.printer.json) process.stdout.write(CLEAR_SCREEN);
    print(invocation, page);
  };
  const events = client.events.follow();
  await show();
  for await (const event of events) if (event.type.startsWith('sandbox.')) await show();
}

export function define(command: Command, invocation: Invocation): void {
  command
    .option('-a, --all', 'destroyed ones, too')
    .option('-p, --profile <ref>', 'only of this profile')
    .option('--extension <id>', 'only on this backend')
    .option('-l, --label <key=value>', 'only with this label', pairs('label'))
    .option('--harness <name>', 'only of this harness')
    .option('--external-id <id>', 'only of this session, run, job or agent')
    .option('-n, --limit <number>', 'at most so many', wholeNumber, 100)
    .option('--watch', 'again whenever something changes');
  choices(command, '--state <state>', 'only in this state; may be repeated', [...NOT_DESTROYED, 'destroyed']);
  command.action(async (flags: Flags) => {
    if (flags.watch) return watch(invocation, flags);
    print(invocation, await fetchPage(await invocation.sandboxes(), flags));
  });
}
