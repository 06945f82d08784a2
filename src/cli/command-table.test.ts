import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { COMMAND_TABLE, COMMANDS } from './command-table.ts';
import { helpText } from './help-text.ts';
import { addGlobalOptions, globalOptionsOf, plainWordsIn, wantsJson } from './invocation/global-options.ts';
import { Invocation } from './invocation/invocation.ts';

const FOLDERS = {
  Sandboxes: 'sandboxes',
  'Inside a sandbox': 'inside',
  Snapshots: 'snapshots',
  'Images and volumes': 'images-and-volumes',
  'Catalogue and routing': 'catalogue',
  Account: 'account',
  Server: 'server',
};

describe('the table of commands', () => {
  it('command files: each lies in the folder of its help group', () => {
    const misplaced = COMMANDS.flatMap(({ name, group }) =>
      group === null || existsSync(join(import.meta.dirname, 'commands', FOLDERS[group], `${name}.ts`))
        ? []
        : [name],
    );
    expect(misplaced).toEqual([]);
  });

  it('the table of commands lists every file below commands/, and only those', () => {
    const names = COMMANDS.map(({ name }) => name);
    /** Part of a large command in a file of its own, named for both: `credits-limits`. */
    const isPart = (file: string) =>
      !names.includes(file) && names.some((name) => file.startsWith(`${name}-`));
    const files = readdirSync(join(import.meta.dirname, 'commands'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => basename(file, '.ts'))
      .filter((file) => !isPart(file));
    expect(names.sort()).toEqual(files.sort());
  });

  it.each(COMMANDS.map((entry) => [entry.name, entry] as const))(
    'the table of commands defines %s with its own name and options',
    async (_name, entry) => {
      const { define } = await entry.load();
      const program = new Command('sandboxer').enablePositionalOptions();
      const command = program.command(entry.name);
      define(command, new Invocation({}), COMMAND_TABLE);
      addGlobalOptions(program);
      const names = command.commands.map((below) => below.name());
      if (names.length > 0) expect(names.sort()).toEqual([...(entry.subcommands ?? [])].sort());
      const leaves = command.commands.length > 0 ? command.commands : [command];
      for (const leaf of leaves) {
        expect(leaf.options.map(({ long }) => long)).toEqual(
          expect.arrayContaining(['--json', '--url', '--quiet']),
        );
        const flags = leaf.options.flatMap(({ short, long }) => [short, long]).filter(Boolean);
        expect(new Set(flags).size).toBe(flags.length);
      }
    },
  );

  it('the table of commands is listed whole in the help', () => {
    for (const { name, summary, group } of COMMANDS) {
      if (group !== null)
        expect(helpText()).toMatch(new RegExp(`^  ${name}\\b.*  ${summary.replace(/[()+]/g, '.')}$`, 'm'));
    }
    for (const line of helpText().split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe('global options', () => {
  it('global options are understood before and after the command', async () => {
    for (const argv of [
      ['--json', '--url', 'http://a', 'list'],
      ['list', '--json', '--url', 'http://a'],
      ['--url', 'http://b', 'list', '--url', 'http://a', '--json'],
    ]) {
      const program = new Command('sandboxer').enablePositionalOptions();
      let seen: unknown;
      program.command('list').action((_flags, command: Command) => {
        seen = globalOptionsOf(command, { SANDBOXER_KEY: 'k' });
      });
      addGlobalOptions(program);
      await program.parseAsync(argv, { from: 'user' });
      expect(seen).toMatchObject({ json: true, url: 'http://a', key: 'k', color: true, quiet: false });
    }
  });

  it('global options do not hide the command', () => {
    expect(plainWordsIn(['--url', 'x', '--json', 'profiles', 'show', 'y'])).toEqual([
      'profiles',
      'show',
      'y',
    ]);
    expect(plainWordsIn(['--url=x', 'list'])).toEqual(['list']);
    expect(wantsJson(['exec', '--json', 'a', '--', 'b'])).toBe(true);
    expect(wantsJson(['exec', 'a', '--', 'b', '--json'])).toBe(false);
  });
});
