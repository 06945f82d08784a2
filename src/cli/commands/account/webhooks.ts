import type { Command } from 'commander';
import type { EventType } from '../../../contract/events/event.ts';
import type { Webhook } from '../../../contract/events/webhook.ts';
import { duration } from '../../args/numbers.ts';
import { list } from '../../args/pairs.ts';
import { EXIT } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { defineList } from '../../invocation/listing.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';
import { workspaceColumn } from '../../output/workspace-column.ts';
import { defineDeliveries } from './webhooks-deliveries.ts';

function columns(rows: readonly Webhook[], now: number): Column<Webhook>[] {
  return [
    { title: 'WEBHOOK', value: (row) => row.webhook_id },
    ...workspaceColumn(rows),
    { title: 'STATE', value: (row) => (row.enabled ? 'enabled' : 'disabled') },
    { title: 'LAG', align: 'right', value: (row) => String(row.lag) },
    { title: 'PARKED', align: 'right', value: (row) => String(row.parked) },
    { title: 'DEAD', align: 'right', value: (row) => String(row.dead) },
    { title: 'TAKEN', spare: true, value: (row) => relativeTime(row.last_taken_at, now) },
    { title: 'URL', cuttable: true, value: (row) => row.url },
    { title: 'ERROR', cuttable: true, value: (row) => row.disabled_reason ?? row.last_error ?? '-' },
  ];
}

function printSecret(printer: Printer, webhook: Webhook & { readonly secret: string }): void {
  printer.result(webhook, () => {
    printer.line(webhook.secret);
    printer.note(`${webhook.webhook_id}: keep the secret, it is not shown again`);
  });
}

function defineOne(
  command: Command,
  invocation: Invocation,
  name: 'enable' | 'disable' | 'delete',
  description: string,
): void {
  command
    .command(name)
    .description(description)
    .argument('<webhook>', 'its id')
    .action(async (id: string) => {
      const { printer } = invocation;
      const answer = await (await invocation.client()).webhooks[name](id);
      printer.result(answer ?? { webhook_id: id }, () => printer.line(id));
    });
}

export function define(command: Command, invocation: Invocation): void {
  defineList(command, invocation, {
    description: 'List the webhooks and how far they are',
    empty: 'There are no webhooks.',
    fetch: (client) => client.webhooks.list(),
    name: (row) => row.webhook_id,
    columns,
  });
  command
    .command('create')
    .description('Post events to a URL; the secret that signs them is shown this once')
    .argument('<url>', 'where events are posted to')
    .option('--type <type>', 'only this type of event', list)
    .option('--description <text>', 'purpose of the webhook')
    .action(
      async (url: string, flags: { readonly type?: readonly EventType[]; readonly description?: string }) => {
        const webhook = await (await invocation.client()).webhooks.create({
          url,
          ...(flags.type === undefined ? {} : { types: [...flags.type] }),
          ...(flags.description === undefined ? {} : { description: flags.description }),
        });
        printSecret(invocation.printer, webhook);
      },
    );
  command
    .command('ping')
    .description('Send one event now, and see what comes of it')
    .argument('<webhook>', 'its id')
    .action(async (id: string) => {
      const { printer } = invocation;
      const result = await (await invocation.client()).webhooks.ping(id);
      printer.result(result, () =>
        printer.line(
          result.taken ? `taken in ${Math.round(result.duration_ms)} ms` : `not taken: ${result.error}`,
        ),
      );
      if (!result.taken) invocation.exitCode = EXIT.failed;
    });
  defineDeliveries(command, invocation);
  command
    .command('rotate')
    .description('Sign with a new secret, which is shown this once')
    .argument('<webhook>', 'its id')
    .option('--overlap <duration>', 'how long the old secret signs beside the new one', duration)
    .action(async (id: string, { overlap }: { readonly overlap?: string | number }) => {
      const { webhooks } = await invocation.client();
      const rotated = webhooks.rotateSecret(id, overlap === undefined ? {} : { overlap });
      printSecret(invocation.printer, await rotated);
    });
  defineOne(command, invocation, 'enable', 'Go on where it stopped');
  defineOne(command, invocation, 'disable', 'Deliver nothing until it is enabled');
  defineOne(command, invocation, 'delete', 'Delete it');
}
