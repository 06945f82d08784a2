import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { debianSources } from './debian-sources.ts';

const place = mkdtempSync(join(tmpdir(), 'sbx-apt-'));
afterAll(() => rmSync(place, { recursive: true }));

function aptWith(files: Record<string, string>): string {
  const directory = mkdtempSync(join(place, 'etc-'));
  mkdirSync(join(directory, 'sources.list.d'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

describe('the package sources of this machine', () => {
  it('the package sources of this machine are those of the suite, in both forms', () => {
    const directory = aptWith({
      'sources.list': [
        '# deb http://a.test/debian bookworm main',
        'deb [signed-by=/k arch=amd64] http://a.test/debian bookworm main contrib',
        'deb-src http://a.test/debian bookworm main',
        'deb http://a.test/debian bookwormish main',
        'deb http://a.test/security bookworm-security main',
      ].join('\n'),
      'sources.list.d/debian.sources':
        'Types: deb\n# said before\nURIs: http://b.test/debian\nSuites: trixie bookworm-updates\nComponents: main\n' +
        '\nTypes: deb\nURIs: http://b.test/off\nSuites: bookworm\nEnabled: no\n' +
        '\nTypes: deb-src\nURIs: http://b.test/src\nSuites: bookworm\n' +
        '\nTypes: deb\nURIs: http://b.test/node\nSuites: nodistro\n',
      'sources.list.d/left.list.save': 'deb http://a.test/saved bookworm main\n',
    });
    expect(debianSources('bookworm', directory)).toEqual({
      lines: [
        'deb [signed-by=/k arch=amd64] http://a.test/debian bookworm main contrib',
        'deb http://a.test/security bookworm-security main',
      ],
      paragraphs: [
        'Types: deb\nURIs: http://b.test/debian\nSuites: trixie bookworm-updates\nComponents: main',
      ],
    });
    expect(debianSources('sid', directory)).toEqual({ lines: [], paragraphs: [] });
  });

  it('the package sources of this machine with a password are left out: it would lie in the image', () => {
    const directory = aptWith({
      'sources.list': 'deb http://me:secret@a.test/debian bookworm main\n',
      'sources.list.d/own.sources': 'Types: deb\nURIs: https://me:secret@a.test/\nSuites: bookworm\n',
    });
    expect(debianSources('bookworm', directory)).toEqual({ lines: [], paragraphs: [] });
  });

  it('the package sources of this machine are none where there is no apt', () => {
    expect(debianSources('bookworm', join(place, 'nowhere'))).toEqual({ lines: [], paragraphs: [] });
  });
});
