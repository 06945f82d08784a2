import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROUTE_TABLE } from '../../src/http/server/route-table.ts';
import { ROOT } from './run-document.ts';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
/** Between our own processes, or a prefix; not for people. */
const INTERNAL = /^SANDBOXER_(?:READY_FD|STUB_(?!URL).*|SECRET_.*|PROPERTY_RUNS|FETCH_.*)$/;

describe('the reference', () => {
  it('the reference names every variable that the server, the command and the client read', () => {
    const page = read('docs/reference/config.md');
    const files = globSync('src/{main,cli,client,secrets}/**/*.ts', { cwd: ROOT });
    const read_ = files
      .filter((file) => !file.endsWith('.test.ts'))
      .flatMap((file) => [...read(file).matchAll(/\bSANDBOXER_[A-Z_]+\b/g)]);
    const names = new Set(read_.map(([name]) => name).filter((name) => !INTERNAL.test(name)));
    expect([...names].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it('the reference has every route on both pages of the API', () => {
    const markdown = read('docs/reference/api.md');
    const html = read('docs/reference/api.html');
    for (const { method, url, operationId } of ROUTE_TABLE) {
      expect(markdown).toContain(`### \`${method} ${url}\``);
      expect(html).toContain(`id="${operationId}"`);
    }
  });

  it('the page of the API needs no network', () => {
    const html = read('docs/reference/api.html');
    expect(html).not.toMatch(
      /<(?:link|img|iframe|object|embed)\b|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest/,
    );
    expect([...html.matchAll(/href="([^"]*)"/g)].filter(([, target]) => !target?.startsWith('#'))).toEqual(
      [],
    );
    const ids = new Set([...html.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id));
    const targets = [...html.matchAll(/href="#([^"]*)"/g)].map(([, target]) => target);
    expect(targets.filter((target) => !ids.has(target))).toEqual([]);
  });

  // /home/user is the home inside a sandbox; /root/.ssh and its like are places that attempts from inside try to read.
  it('the reference holds nothing of the machine it was written on', () => {
    for (const file of globSync('docs/**/*.{md,html,json,sh}', { cwd: ROOT })) {
      expect([
        file,
        /\/home\/(?!user\/)[a-z]+\/|(?<!\w)\/root\/(?!\.)|registry\.npmjs/.test(read(file)),
      ]).toEqual([file, false]);
    }
  });
});
