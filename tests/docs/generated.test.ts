import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { allGenerators } from '../../scripts/generators/all-generators.ts';
import { ERRORS } from '../../src/contract/errors/errors.ts';

const root = path.resolve(import.meta.dirname, '../..');

describe('generated files', () => {
  it.each(allGenerators.map(({ file, render }) => ({ file, render })))(
    '$file is up to date',
    ({ file, render }) => {
      expect(readFileSync(path.join(root, file), 'utf8')).toBe(render());
    },
  );

  it('generated files are checked by the command', () => {
    const check = spawnSync(process.execPath, ['scripts/generate.ts', '--check'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(check.stderr).toBe('');
    expect(check.status).toBe(0);
  });

  it('generated files name every error', () => {
    const page = readFileSync(path.join(root, 'docs/reference/errors.md'), 'utf8');
    const named = [...page.matchAll(/`(SBX_[A-Z_]+)`/g)].map(([, code]) => code);
    expect(named).toEqual(Object.keys(ERRORS));
  });
});
