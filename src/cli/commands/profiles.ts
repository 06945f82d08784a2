import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { SandboxerApiError } from '../../client/api-error.ts';
import type { CatalogueProfile } from '../../client/profiles.ts';
import { CommandFailure } from '../command-failure.ts';
import type { Invocation } from '../invocation.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/table.ts';
import { UsageError } from '../usage-error.ts';

interface Shown {
  readonly id?: string;
  readonly version?: string;
  readonly description?: string;
}

function columns(printer: Printer): Column<CatalogueProfile>[] {
  const { green, red } = printer.out;
  const of = (row: CatalogueProfile) => row.profile as Shown;
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
  ];
}

async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

async function readDocument(path: string): Promise<string> {
  try {
    return path === '-' ? await readInput() : await readFile(path, 'utf8');
  } catch (cause) {
    throw new UsageError(`The file ${path} cannot be read: ${(cause as Error).message}`);
  }
}

/** JSON is YAML, but its errors are better told as JSON. */
function bodyOf(path: string, text: string) {
  const contentType = path.endsWith('.json') ? 'application/json' : 'application/yaml';
  return { body: Buffer.from(text), contentType } as const;
}

async function validate(invocation: Invocation, path: string): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const body = bodyOf(path, await readDocument(path));
  try {
    // A server that knows no such parameter refuses it, so that nothing is published by mistake.
    const answer = await client.request({ method: 'POST', path: '/v1/profiles?validate=true', ...body });
    printer.result(answer, () => printer.line(`${path}: valid`));
  } catch (error) {
    if (!(error instanceof SandboxerApiError) || error.field !== 'validate') throw error;
    throw new CommandFailure('This server cannot validate a profile without publishing it.', {
      code: 'SBX_CLI_NOT_CONFIGURED',
      remedy: 'Update the server, or push the profile: a profile that is not valid is refused.',
      cause: error,
    });
  }
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('list', { isDefault: true })
    .description('List every version of every profile')
    .action(async () => {
      const { printer } = invocation;
      const found = await (await invocation.client()).profiles.list();
      printer.result(found, () => {
        printer.table(columns(printer), found.items);
        for (const { file, line, field, problem } of found.issues ?? []) {
          printer.warn(`${file}${line === null ? '' : `:${line}`}: ${field}: ${problem}`);
        }
      });
    });
  command
    .command('show')
    .description('Show a profile with every default filled in')
    .argument('<ref>', 'agent-dev, profile.agent-dev or agent-dev@1.0.0')
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
      const client = await invocation.client();
      const body = bodyOf(path, await readDocument(path));
      const entry = await client.request<CatalogueProfile>({ method: 'POST', path: '/v1/profiles', ...body });
      const { id, version } = entry.profile as Shown;
      printer.result(entry, () => printer.line(`${id}@${version}`));
    });
  command
    .command('validate')
    .description('Check a profile without publishing it')
    .argument('<file>', 'YAML or JSON; - reads the input')
    .action((path: string) => validate(invocation, path));
}
