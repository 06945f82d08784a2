/** Adding an extension touches its folder and one line of builtins.ts: nothing else in the product names one. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { BUILTINS, settingOf } from '../../src/extensions/builtins.ts';
import { ROOT } from './run-document.ts';

/** Files that name a built-in extension, each with the reason. A new extension has to add none. */
const NAMED_ELSEWHERE: Readonly<Record<string, string>> = {
  'src/http/v1/images.ts': 'the default of a request: images are for this machine',
  'src/contract/assets/image.ts': 'the default of a request: images are for this machine',
  'src/contract/assets/volume.ts': 'the default of a request: volumes are for this machine',
  'src/contract/profiles/profile.ts': 'a description names the extensions that start sandboxes ahead',
  'src/contract/values/ids.ts': 'an id as an example, in a message',
  'src/control/sandboxes/plan-stack.ts': 'a remedy names the extension that makes stacks',
  'src/cli/output/sandbox-view.ts': 'an example in a comment',
  'src/cli/help/command-examples.ts': 'examples of the help',
  'src/cli/commands/account/providers.ts': 'an example of the help',
  'src/cli/commands/catalogue/extensions.ts': 'an example of the help',
  'scripts/folder-order.ts': 'one sentence for each folder of the tree',
  'scripts/generators/config-page.ts': 'variables of the environment that turn extensions off',
};

const NAMES = new RegExp(
  `\\b(?:${BUILTINS.map(({ id }) => id.replace('.', '\\.')).join('|')})\\b|extensions/(?:${BUILTINS.map(
    ({ id }) => id.slice('ext.'.length),
  ).join('|')})/`,
);

const sources = globSync(['src/**/*.ts', 'scripts/**/*.ts'], { cwd: ROOT })
  .filter((file) => !/\.test\.ts$|^src\/(?:extensions|store\/suite)\//.test(file))
  .filter((file) => file !== 'scripts/test-levels.ts');
const naming = sources.filter((file) => NAMES.test(readFileSync(path.join(ROOT, file), 'utf8')));

describe('an extension is one value', () => {
  it('product: no file names a built-in extension, but those with a reason', () => {
    expect(naming.sort()).toEqual(Object.keys(NAMED_ELSEWHERE).sort());
  });

  it('builtins.ts: each extension has one import and one place in the list', () => {
    const text = readFileSync(path.join(ROOT, 'src/extensions/builtins.ts'), 'utf8');
    for (const { id } of BUILTINS)
      expect(text.split(`'./${id.slice('ext.'.length)}/index.ts'`)).toHaveLength(2);
    const folders = globSync('src/extensions/*/index.ts', { cwd: ROOT });
    expect(folders.map((file) => `ext.${path.basename(path.dirname(file))}`).sort()).toEqual(
      BUILTINS.map(({ id }) => id).sort(),
    );
  });

  it('pages: the configuration and the registry have every extension of the list', () => {
    const page = readFileSync(path.join(ROOT, 'docs/reference/config.md'), 'utf8');
    for (const { id } of BUILTINS) expect(page).toContain(`| \`extensions.${settingOf(id)}\` |`);
    const entries = globSync('registry/extensions/*.yaml', { cwd: ROOT });
    expect(entries.map((file) => path.basename(file, '.yaml')).sort()).toEqual(
      BUILTINS.map(({ id }) => id).sort(),
    );
  });
});
