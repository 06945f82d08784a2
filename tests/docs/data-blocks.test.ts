/** What documents show and no shell runs: configuration, profiles, requests, and commands within a sentence. */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseProfileDocument, parseProfileText } from '../../src/catalogue/profiles/profile-document.ts';
import { leafCommands } from '../../src/cli/leaf-commands.ts';
import { CreateSandboxRequest, Reachability } from '../../src/contract/sandboxes/sandbox.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import { fencedBlocks } from './fenced-blocks.ts';
import { ROOT } from './run-document.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'sbx-blocks-'));
afterAll(() => rmSync(directory, { recursive: true }));

const written = globSync('docs/**/*.md', { cwd: ROOT })
  .filter((file) => !file.startsWith('docs/reference/'))
  .sort();
const text = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

function readConfig(document: string): void {
  const file = path.join(directory, 'config.yaml');
  writeFileSync(file, document);
  loadConfig({ SANDBOXER_CONFIG: file, SANDBOXER_STATE_DIR: directory });
}

const MINIMAL = { id: 'profile.shown', version: '1.0.0', description: 'Shown.', image: 'host' };

/** What a block says it `is`, and what then must accept it. */
const READERS: Readonly<Record<string, (document: string) => void>> = {
  'yaml config': readConfig,
  'yaml profile': (document) => void parseProfileText(document),
  'yaml profile-part': (document) => void parseProfileDocument({ ...MINIMAL, ...parse(document) }),
  'yaml pipeline': (document) => {
    const { test } = parse(document) as { test: { script: string[] } };
    expect(test.script.flatMap(unknownOptions)).toEqual([]);
  },
  'json create': (document) => void CreateSandboxRequest.parse(JSON.parse(document)),
  'json package': (document) => expect(JSON.parse(document)).toHaveProperty('peerDependencies.sand-boxer'),
  'json part-of-answer': (document) => {
    const { reachability } = JSON.parse(document) as { reachability: unknown };
    Reachability.partial().parse(reachability);
  },
};

const leaves = await leafCommands();

/** The options of a line that its command does not have. A noun alone takes the options of its commands. */
function unknownOptions(line: string): string[] {
  const [own = ''] = line.split(' -- ');
  const [, name = '', second = ''] = own.split(' ');
  const found = leaves.filter((leaf) => [name, `${name} ${second}`].includes(leaf.name));
  const commands = found.length > 0 ? found : leaves.filter((leaf) => leaf.name.startsWith(`${name} `));
  if (commands.length === 0) return [line];
  const known = new Set(
    commands.flatMap(({ command }) => command.options.flatMap(({ long, short }) => [long, short])),
  );
  return own
    .split(' ')
    .filter((word) => /^--?[a-z]/.test(word) && !['--help', '-h', '--version'].includes(word))
    .map((word) => word.split('=')[0] as string)
    .filter((word) => !known.has(word))
    .map((word) => `${line}: ${word}`);
}

describe('blocks of data', () => {
  const blocks = written.flatMap((file) =>
    fencedBlocks(text(file))
      .filter(({ language }) => ['yaml', 'json'].includes(language))
      .map((block) => [`${file}:${block.line}`, block] as const),
  );

  it.each(blocks)(
    '%s is accepted as what it says it is',
    (_place, { language, attributes, text: document }) => {
      const read = READERS[`${language} ${attributes.is}`];
      expect(read, 'say what it is: is=config, profile, profile-part, create …').toBeDefined();
      read?.(document);
    },
  );
});

describe('commands within a sentence', () => {
  it.each(written)('%s: each exists and has the options that are named', (file) => {
    const lines = [...text(file).matchAll(/`(sandboxer [a-z][^`]*)`/g)].map(([, line = '']) =>
      line.replaceAll(/\s+/g, ' '),
    );
    expect(lines.flatMap(unknownOptions)).toEqual([]);
  });
});
