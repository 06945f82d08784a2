import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMAND_EXAMPLES } from '../../src/cli/command-examples.ts';
import { COMMANDS } from '../../src/cli/command-table.ts';
import { CreateSandboxRequest } from '../../src/contract/sandbox.ts';
import { DocWorld } from './doc-world.ts';
import { outputMatches } from './expected-output.ts';
import { fencedBlocks } from './fenced-blocks.ts';
import { ROOT, runDocument, runnableBlocks } from './run-document.ts';

const TUTORIAL = 'docs/tutorial.md';
const documents = globSync('docs/**/*.md', { cwd: ROOT }).sort();
const text = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const withExamples = documents.filter((file) => file !== TUTORIAL && runnableBlocks(text(file)).length > 0);

describe('the examples of', () => {
  it.concurrent.each(withExamples)(
    '%s do what it says',
    async (file) => {
      const world = await DocWorld.open();
      try {
        await runDocument(file, world);
      } finally {
        await world.close();
      }
    },
    120_000,
  );
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

  it('hold requests that the API accepts', () => {
    for (const file of documents) {
      for (const { language, attributes, text: request } of fencedBlocks(text(file))) {
        if (language === 'json' && attributes.is === 'create')
          expect(() => CreateSandboxRequest.parse(JSON.parse(request)), file).not.toThrow();
      }
    }
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

  it('have an example for every command', () => {
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
