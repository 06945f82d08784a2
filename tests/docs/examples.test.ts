import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table.ts';
import { COMMAND_EXAMPLES } from '../../src/cli/help/command-examples.ts';
import { ERRORS } from '../../src/contract/errors/errors.ts';
import { DocWorld } from './doc-world.ts';
import { outputMatches } from './expected-output.ts';
import { fencedBlocks } from './fenced-blocks.ts';
import { needsOf, ROOT, runDocument, runnableBlocks, uncheckedLines } from './run-document.ts';

const TUTORIAL = 'docs/tutorial.md';
const documents = globSync('docs/**/*.md', { cwd: ROOT }).sort();
const text = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const withExamples = documents.filter((file) => file !== TUTORIAL && runnableBlocks(text(file)).length > 0);

describe('the examples of', () => {
  it.concurrent.each(withExamples)('%s do what it says', async (file) => {
    const world = await DocWorld.open(needsOf(text(file)));
    try {
      await runDocument(file, world);
    } finally {
      await world.close();
    }
  });
});

describe('documents', () => {
  it('mark every block with a language', () => {
    const unmarked = documents
      .filter((file) => !/^docs\/(?:explanation|meta-framework)/.test(file))
      .flatMap((file) =>
        fencedBlocks(text(file))
          .filter(({ language }) => language === '')
          .map(({ line }) => `${file}:${line}`),
      );
    expect(unmarked).toEqual([]);
  });

  it('documents show no commands and no output that no test runs', () => {
    const written = documents.filter((file) => !file.startsWith('docs/reference/'));
    const unchecked = ['README.md', ...written].flatMap((file) =>
      uncheckedLines(text(file)).map((line) => `${file}:${line}`),
    );
    expect(unchecked).toEqual([]);
  });

  it('link to files that exist', () => {
    const broken = documents.flatMap((file) =>
      [...text(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map(([, target]) => path.join(path.dirname(file), target ?? ''))
        .filter((target) => globSync(target, { cwd: ROOT }).length === 0)
        .map((target) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('documents name commands and errors that exist', () => {
    const known = new Map(COMMANDS.map((command) => [command.name, command]));
    const wrong: string[] = [];
    for (const file of documents.filter((name) => /^docs\/(?:runbooks|guides|host-telemetry)/.test(name))) {
      for (const [, name = '', next = ''] of text(file).matchAll(
        /`sandboxer ([a-z][\w-]*)(?: ([a-z][\w-]*))?/g,
      )) {
        const command = known.get(name);
        const names = command?.subcommands ?? [];
        if (command === undefined) wrong.push(`${file}: sandboxer ${name}`);
        else if (names.length > 0 && next !== '' && !names.includes(next))
          wrong.push(`${file}: sandboxer ${name} ${next}`);
      }
      for (const [code] of text(file).matchAll(/SBX_[A-Z_]+[A-Z]/g))
        if (!code.startsWith('SBX_CLI_') && !Object.hasOwn(ERRORS, code)) wrong.push(`${file}: ${code}`);
    }
    expect(wrong).toEqual([]);
  });

  it('documents have an example for every command', () => {
    const named = COMMANDS.filter(({ group }) => group !== null).map(({ name }) => name);
    expect(Object.keys(COMMAND_EXAMPLES).sort()).toEqual(named.sort());
  });
});

describe('shown output', () => {
  it.each([
    ['a b', 'a   b\n', true],
    ['a b', 'a c\n', false],
    ['id <id> ready', 'id sbx_1 ready\n', true],
    ['first\n…\nlast', 'first\nx\ny\nlast\n', true],
    ['first\n…', 'first\n', true],
    ['first', 'first\nsecond\n', false],
    ['took …s', 'took 0.2s', true],
  ])('%j against %j: %s', (shown, actual, matches) => {
    expect(outputMatches(shown, actual)).toBe(matches);
  });
});
