import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { endDaemons } from './doc-world.ts';
import { ROOT, runDocument } from './run-document.ts';

const TEN_MINUTES_MS = 600_000;

it('the tutorial works from a clone, as it stands', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sbx-tutorial-'));
  const startedAt = Date.now();
  try {
    await runDocument('docs/tutorial.md', {
      directory: join(root, 'blocks'),
      cwd: ROOT,
      // A newcomer has a home and a path, and nothing of ours.
      env: {
        PATH: [dirname(process.execPath), process.env.PATH ?? ''].join(':'),
        HOME: root,
        TMPDIR: root,
        LANG: 'C.UTF-8',
        XDG_CACHE_HOME: join(ROOT, 'node_modules/.cache'),
        DOCS_NODE: process.execPath,
      },
    });
    expect(Date.now() - startedAt).toBeLessThan(TEN_MINUTES_MS);
  } finally {
    endDaemons(root);
    rmSync(root, { recursive: true, force: true });
  }
});
