import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ROOT } from './run-document.ts';

const folder = mkdtempSync(join(tmpdir(), 'sbx-legacy-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Nothing but the file is needed: no server, no state. */
function report(content: string) {
  const file = join(folder, 'sandboxes.json');
  writeFileSync(file, content);
  return run(file);
}

function run(file: string) {
  const args = [
    '--disable-warning=ExperimentalWarning',
    join(ROOT, 'src/cli/main.ts'),
    'import',
    'legacy',
    file,
    '--json',
  ];
  const env = { PATH: process.env.PATH, HOME: folder, SANDBOXER_STATE_DIR: join(folder, 'none') };
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  return { status, answer: JSON.parse(stdout) };
}

describe('docs/migration-gaps.md: import legacy', () => {
  it.each([
    ['a list', '[{"id":"a","state":"ready"}]'],
    ['a map', '{"a":{"status":"READY","whatever":{"x":[1]}}}'],
    ['a list below sandboxes', '{"version":1,"sandboxes":[{"sandbox_id":"a","state":"ready"}]}'],
    ['a map below sandboxes', '{"sandboxes":{"a":{"state":"ready"}}}'],
  ])('import legacy reads %s', (_what, content) => {
    const { status, answer } = report(content);
    expect(status).toBe(4);
    expect(answer.summary).toEqual({ total: 1, ended: 0, living: 1, unreadable: 0, adoptable: 0 });
    expect(answer.records[0]).toMatchObject({ id: 'a', state: 'ready', verdict: 'living', adoptable: false });
    expect(answer.records[0].remedy).toContain('Destroy it');
  });

  it('import legacy reports nothing when all has ended', () => {
    const { status, answer } = report('[{"id":"a","state":"destroyed","created_at":1750000000}]');
    expect(status).toBe(0);
    expect(answer.records[0]).toMatchObject({
      verdict: 'ended',
      remedy: null,
      created_at: '2025-06-15T15:06:40.000Z',
    });
  });

  it('import legacy reports records that say too little', () => {
    const { status, answer } = report('[7, {"id":"a"}, {"state":"ready"}]');
    expect(status).toBe(4);
    expect(answer.summary).toMatchObject({ total: 3, unreadable: 3 });
  });

  it.each([
    ['no JSON', '{'],
    ['no records', '{"version":1}'],
    ['text', '"sandboxes"'],
  ])('import legacy refuses %s', (_what, content) => {
    const { status, answer } = report(content);
    expect(status).toBe(2);
    expect(answer.error.code).toBe('SBX_CLI_USAGE');
  });

  it('import legacy refuses a path that is no file, too large, or missing', () => {
    expect(run(folder).status).toBe(2);
    expect(run(join(folder, 'missing.json')).status).toBe(3);
    const large = join(folder, 'large.json');
    writeFileSync(large, '[');
    truncateSync(large, 17 * 1_048_576);
    expect(run(large).status).toBe(2);
  });
});
