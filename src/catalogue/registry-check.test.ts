import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RegistryFile } from '../core/ports/published-registry.ts';
import { registryFiles } from '../main/ports/published-registry.ts';
import { checkRegistryFiles } from './registry-check.ts';

const shipped = await registryFiles(path.resolve(import.meta.dirname, '../../registry'));
const ENTRY = 'capabilities/capability.execution.sandbox-provision.md';
const INDEX = 'indexes/capabilities.yaml';

/** The shipped registry with one file changed. */
function changed(file: string, edit: (text: string) => string): RegistryFile[] {
  const files = shipped.map((each) => (each.file === file ? { file, text: edit(each.text) } : each));
  expect(files).not.toEqual(shipped);
  return files;
}

async function problemsOf(files: readonly RegistryFile[]): Promise<string[]> {
  return (await checkRegistryFiles(files)).map(({ file, problem }) => `${file}: ${problem}`);
}

describe('registry validate', () => {
  it('the shipped registry is valid, with every kind of file in it', async () => {
    expect(await problemsOf(shipped)).toEqual([]);
    const folders = new Set(shipped.map(({ file }) => path.dirname(file)));
    expect([...folders]).toEqual(['capabilities', 'extensions', 'indexes', 'prices']);
  });

  it.each([
    ['an entry without a status', ENTRY, /^status: .*\n/m, '', [/md: .*status: /]],
    ['a status of no federation', ENTRY, 'status: draft', 'status: done', [/line 7: status: /]],
    ['an id of no capability', ENTRY, /^id: .*/m, 'id: sandboxes', [/line 2: id: Name it as/]],
    ['a level that does not exist', ENTRY, 'current: D5', 'current: D9', [/D0 to D7/]],
    ['an unknown field', ENTRY, 'owner: sand-boxer', 'owner: sand-boxer\nstars: 5', [/"stars"/]],
    ['no front matter', ENTRY, '---\n', '', [/no front matter/]],
    [
      'a file of another name',
      ENTRY,
      /sandbox-provision\n/,
      'sandboxes\n',
      [/name it capability.execution.sandboxes.md/],
    ],
    [
      'another status in the index',
      INDEX,
      'status: draft',
      'status: approved',
      [/status is not that of the entry/],
    ],
    ['another vector in the index', INDEX, 'D5/A4', 'D7/A4', [/vector is not that of the entry/]],
    [
      'a path that leads nowhere',
      INDEX,
      /path: .*/,
      'path: registry/elsewhere.md',
      [/path does not lead to/],
    ],
    [
      'an index of another capability',
      INDEX,
      'sandbox-provision\n',
      'sandboxes\n',
      [/No index lists/, /no entry of/],
    ],
    ['a backend without a vector', ENTRY, '  - ext.ssh\n', '  - ext.ssh\n  - ext.gone\n', [/names ext.gone/]],
    ['a vector that nobody names', ENTRY, '  - ext.ssh\n', '', [/No capability names ext.ssh/]],
    [
      'a vector of another name',
      'extensions/ext.ssh.yaml',
      'id: ext.ssh',
      'id: ext.sh',
      [/name it ext.sh.yaml/],
    ],
    ['a vector without an entry', 'extensions/ext.ssh.yaml', /^ {2}pty: .*\n/m, '', [/capabilities.pty: /]],
    ['a price list of nobody', 'prices/e2b.yaml', 'provider: e2b', 'provider: e3b', [/e3b/]],
  ])('%s is refused', async (_, file, from, to, expected) => {
    const problems = await problemsOf(changed(file, (text) => text.replace(from, to)));
    for (const pattern of expected) expect(problems.join('\n')).toMatch(pattern);
  });

  it('single files: each is checked by itself, without the others', async () => {
    for (const file of shipped) expect(await problemsOf([file])).toEqual([]);
  });

  it('a classification: fields are checked', async () => {
    const text = 'repo_classification:\n  category: thing\n';
    const problems = await problemsOf([{ file: '.repo-classification.yaml', text }]);
    expect(problems.join('\n')).toMatch(/line 2: repo_classification\.category: /);
  });

  it('many costly files: other work of the process goes on meanwhile', async () => {
    const nested = `title: ${'['.repeat(30)}${']'.repeat(30)}\n`;
    const files = Array.from({ length: 200 }, (_, at) => ({ file: `${at}.yaml`, text: nested.repeat(1) }));
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 0);
    await checkRegistryFiles(files);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(0);
  });
});
