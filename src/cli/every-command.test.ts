import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { COMMANDS } from './command-table.ts';
import { Invocation } from './invocation/invocation.ts';
import type { LeafCommand } from './leaf-commands.ts';
import { leafCommands } from './leaf-commands.ts';
import { dispatch } from './program.ts';

/** Failures that are equal for all commands; tests/e2e/every-command tries each command with a server. */
const leaves = (await leafCommands()).filter(({ entry }) => entry.group !== null);
const directory = mkdtempSync(join(tmpdir(), 'sbx-commands-'));
const env = { SANDBOXER_URL: `unix:${join(directory, 'nobody.sock')}`, SANDBOXER_STATE_DIR: directory };

afterEach(() => vi.restoreAllMocks());
afterAll(() => rmSync(directory, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(argv: readonly string[]): Promise<Ended> {
  const shown = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((part) => {
      shown[name] += String(part);
      return true;
    });
  }
  const code = await dispatch(argv, new Invocation(env));
  vi.restoreAllMocks();
  return { code, ...shown };
}

async function errorOf(argv: readonly string[]): Promise<Record<string, unknown> & { exit: number }> {
  const { code, stdout, stderr } = await run(['--json', ...argv]);
  expect(stderr).toBe('');
  const { error } = JSON.parse(stdout) as { error: Record<string, unknown> };
  expect(error).toMatchObject({ remedy: expect.stringMatching(/\S/), detail: expect.stringMatching(/\S/) });
  return { ...error, exit: code };
}

const words = ({ name }: LeafCommand) => name.split(' ');
const usage = ({ entry }: LeafCommand) => ({ code: 'SBX_CLI_USAGE', exit: entry.runsProgram ? 125 : 2 });
const each = (chosen: readonly LeafCommand[]) => chosen.map((leaf) => [leaf.name, leaf] as const);

describe('a wrong line', () => {
  it.each(each(leaves))(
    '%s: an unknown option is refused, and the right one suggested',
    async (_name, leaf) => {
      const needed = leaf.command.options.flatMap(({ mandatory, long }) => (mandatory ? [`${long}=5`] : []));
      expect(await errorOf([...words(leaf), ...needed, '--jsn'])).toMatchObject({
        ...usage(leaf),
        remedy: 'Did you mean --json?',
      });
    },
  );

  const demanding = leaves.filter(
    ({ command }) =>
      command.registeredArguments.some(({ required }) => required) ||
      command.options.some(({ mandatory }) => mandatory),
  );
  it.each(each(demanding))('%s: what is missing is named', async (_name, leaf) => {
    expect(await errorOf(words(leaf))).toMatchObject({
      ...usage(leaf),
      detail: expect.stringMatching(/^Missing required argument|^Required option/),
      remedy: `See sandboxer ${leaf.name} --help.`,
    });
  });

  const counted = leaves.filter(
    ({ command }) => !command.registeredArguments.some(({ variadic }) => variadic),
  );
  it.each(each(counted))('%s: one word too many is refused', async (_name, leaf) => {
    const many = Array.from({ length: leaf.command.registeredArguments.length + 1 }, () => '5');
    expect(await errorOf([...words(leaf), ...many])).toMatchObject(usage(leaf));
  });

  const typos = COMMANDS.filter(({ group }) => group !== null).flatMap(({ name, subcommands = [] }) => [
    [name],
    ...subcommands.map((below) => [name, below]),
  ]);
  it.each(typos.map((path) => [path.join(' '), path] as const))(
    '%s is suggested for a typo',
    async (_, path) => {
      const name = path.at(-1) as string;
      expect(await errorOf([...path.slice(0, -1), `${name}q`])).toMatchObject({
        code: 'SBX_CLI_USAGE',
        exit: 2,
        remedy: `Did you mean "${name}"?`,
      });
    },
  );
});

describe('a server that is not there', () => {
  it.each(['list', 'hosts list', 'exec box -- true'])('%s says so, with a remedy', async (line) => {
    const exit = line.startsWith('exec') ? 125 : 1;
    expect(await errorOf(line.split(' '))).toMatchObject({ code: 'SBX_CLI_UNREACHABLE', exit });
  });
});

describe('--help', () => {
  it.each(each(leaves))('--help of %s fits into 80 columns, on stdout', async (name, leaf) => {
    const { code, stdout, stderr } = await run([...words(leaf), '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^Usage: sandboxer ${name}\\b`));
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    expect(stdout).toMatch(/^Examples:\n {2}\S/m);
    expect(leaf.command.description()).toMatch(/\S/);
    for (const argument of leaf.command.registeredArguments)
      expect(argument.description, argument.name()).toMatch(/\S/);
  });
});
