import type { Command } from 'commander';
import type { CatalogueProfile, Profiles } from '../../../client/resources/profiles.ts';
import { SandboxerApiError } from '../../../client/transport/api-error.ts';
import { readInputFile } from '../../args/input-file.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { printList } from '../../invocation/listing.ts';
import type { Printer } from '../../output/printer.ts';
import type { Column } from '../../output/table.ts';

interface Shown {
  readonly id?: string;
  readonly version?: string;
  readonly description?: string;
}

const of = (row: CatalogueProfile) => row.profile as Shown;

function columns(_rows: readonly CatalogueProfile[], _now: number, printer: Printer) {
  const { green, red } = printer.out;
  return [
    { title: 'PROFILE', value: (row) => of(row).id ?? '' },
    { title: 'VERSION', value: (row) => of(row).version ?? '' },
    {
      title: 'AVAILABLE',
      value: (row) => (row.available ? 'yes' : 'no'),
      paint: (text, row) => (row.available ? green(text) : red(text)),
    },
    {
      title: 'DESCRIPTION',
      cuttable: true,
      value: (row) => (row.available ? of(row).description : row.unavailable_reason) ?? '',
    },
  ] satisfies Column<CatalogueProfile>[];
}

/** Issues get the name of their file, which the server does not know. */
function inFile(error: unknown, path: string): unknown {
  if (!(error instanceof SandboxerApiError) || !Array.isArray(error.problem.issues)) return error;
  const file = path === '-' ? 'input' : path;
  const issues = error.problem.issues.map((issue) => ({ ...issue, file }));
  const count = issues.length === 1 ? '1 problem' : `${issues.length} problems`;
  const remedy = 'Correct the named fields, then check again: sandboxer profiles validate.';
  return new SandboxerApiError({ ...error.problem, detail: `${count} in ${file}.`, remedy, issues });
}

/** Sends the text as it is: JSON is YAML, too, and lines are known of both. */
async function send<T>(
  invocation: Invocation,
  path: string,
  act: (profiles: Profiles, text: string) => Promise<T>,
): Promise<T> {
  const text = await readInputFile(path);
  const { profiles } = await invocation.client();
  try {
    return await act(profiles, text);
  } catch (error) {
    throw inFile(error, path);
  }
}

async function validate(invocation: Invocation, path: string): Promise<void> {
  const { printer } = invocation;
  const checked = await send(invocation, path, (profiles, text) => profiles.validate(text));
  const { id, version } = checked.profile as Shown;
  printer.result(checked, () => {
    printer.line(`${path}: valid`);
    if (checked.published) printer.note(`${id}@${version} is published already, with the same content.`);
    if (!checked.available) printer.warn(`No backend here could fulfil it: ${checked.unavailable_reason}`);
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('list', { isDefault: true })
    .description('List every version of every profile')
    .action(async () => {
      const { printer } = invocation;
      const found = await (await invocation.client()).profiles.list();
      printList(printer, found, {
        empty: 'There are no profiles.',
        name: (row) => of(row).id ?? '',
        columns,
      });
      for (const { file, line, field, problem } of found.issues ?? []) {
        printer.warn(`${file}${line === null ? '' : `:${line}`}: ${field}: ${problem}`);
      }
    });
  command
    .command('show')
    .description('Show a profile with every default filled in')
    .argument('<profile>', 'agent-dev, profile.agent-dev or agent-dev@1.0.0')
    .action(async (ref: string) => {
      const { printer } = invocation;
      const entry = await (await invocation.client()).profiles.get(ref);
      printer.result(entry, () => {
        printer.details([
          ['source', entry.source],
          ['fingerprint', entry.fingerprint],
          ['available', entry.available ? 'yes' : `no: ${entry.unavailable_reason}`],
        ]);
        printer.line(JSON.stringify(entry.profile, null, 2));
      });
    });
  command
    .command('push')
    .description('Publish a version of a profile')
    .argument('<file>', 'YAML or JSON; - reads the input')
    .action(async (path: string) => {
      const { printer } = invocation;
      const entry = await send(invocation, path, (profiles, text) => profiles.push(text));
      const { id, version } = entry.profile as Shown;
      printer.result(entry, () => printer.line(`${id}@${version}`));
    });
  command
    .command('validate')
    .description('Check a profile without publishing it')
    .argument('<file>', 'YAML or JSON; - reads the input')
    .action((path: string) => validate(invocation, path));
}
