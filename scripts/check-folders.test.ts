import { expect, it } from 'vitest';
import {
  folderCycles,
  includesOf,
  nameFaults,
  orderFaults,
  sizeFaults,
  sourceFiles,
} from './check-folders.ts';
import { LONG_FILES, ROOMS } from './folder-order.ts';

const NAMED = Object.entries(ROOMS).flatMap(([room, { folders }]) =>
  folders.map(({ place }) => `${place === '.' ? room : `${room}/${place}`}/x.ts`),
);
const exempt = (file: string) => (LONG_FILES.includes(file) ? 500 : 80);
const FILES = [...NAMED, ...LONG_FILES];

it('check-folders: two folders that import each other by way of a third are named', () => {
  const imports = [
    { from: 'src/a/one/x.ts', to: 'src/a/two/y.ts' },
    { from: 'src/a/two/y.ts', to: 'src/a/three/z.ts' },
    { from: 'src/a/three/w.ts', to: 'src/a/one/x.ts' },
    { from: 'src/b/x.ts', to: 'src/a/one/x.ts' },
  ];
  expect(folderCycles(imports)).toEqual(['folders import each other: src/a/one, src/a/three, src/a/two']);
  expect(folderCycles(imports.slice(1))).toEqual([]);
});

it('check-folders: a folder and the one above it count as two', () => {
  const imports = [
    { from: 'src/a/x.ts', to: 'src/a/one/y.ts' },
    { from: 'src/a/one/y.ts', to: 'src/a/z.ts' },
  ];
  expect(folderCycles(imports)).toHaveLength(1);
});

it('check-folders: an import against the order of a room is refused', () => {
  const caller = 'src/core/tenancy/caller.ts';
  const routing = 'src/core/routing/routing.ts';
  expect(orderFaults([{ from: caller, to: routing }])).toHaveLength(1);
  expect(orderFaults([{ from: routing, to: caller }])).toEqual([]);
  expect(orderFaults([{ from: routing, to: 'src/core/routing/fit.ts' }])).toEqual([]);
});

it('check-folders: the directory of a room has a place in the order, too', () => {
  const root = 'src/extensions/local/extension.ts';
  const part = 'src/extensions/local/engine/engine.ts';
  expect(orderFaults([{ from: root, to: part }])).toEqual([]);
  expect(orderFaults([{ from: part, to: root }])).toEqual([
    `${part} → ${root}\n  src/extensions/local: engine may not import ., which stands after it`,
  ]);
});

it('check-folders: an include of our own header counts, one of the system does not', () => {
  const text = '#define _GNU_SOURCE\n#include "../agent.h"\n#include <errno.h>\n#include "conn.h"\n';
  const found = includesOf('agent/wire/conn.c', text);
  expect(found.map(({ to }) => to)).toEqual(['agent/agent.h', 'agent/wire/conn.h']);
  expect(orderFaults(found)).toEqual([
    'agent/wire/conn.c → agent/agent.h\n  agent: wire may not import ., which stands after it',
  ]);
});

it('check-folders: a folder without a sentence is refused, and a sentence without a folder', () => {
  expect(nameFaults(NAMED)).toEqual([]);
  expect(nameFaults([...NAMED, 'src/core/unheard/x.ts'])).toEqual([
    'scripts/folder-order.ts does not name src/core/unheard',
  ]);
  expect(nameFaults(NAMED.filter((file) => file !== 'src/core/tenancy/x.ts'))).toEqual([
    'scripts/folder-order.ts names src/core/tenancy, which has no source file',
  ]);
});

it('check-folders: a folder of 31 source files is refused, one of 30 is not', () => {
  const folder = (count: number) => Array.from({ length: count }, (_, n) => `src/full/${n}.ts`);
  expect(sizeFaults([...FILES, ...folder(30)], exempt)).toEqual([]);
  expect(sizeFaults([...FILES, ...folder(31)], exempt)).toEqual([
    'src/full: 31 source files, at most 30: cut it by noun',
  ]);
});

it('check-folders: a file of 401 lines is refused, one of 400 is not', () => {
  const long = 'src/core/tenancy/long.ts';
  const linesOf = (lines: number) => (file: string) => (file === long ? lines : exempt(file));
  expect(sizeFaults([...FILES, long], linesOf(400))).toEqual([]);
  expect(sizeFaults([...FILES, long], linesOf(401))).toEqual([`${long}: 401 lines, at most 400`]);
});

it('check-folders: an exemption that is not needed is refused', () => {
  const [first] = LONG_FILES;
  const linesOf = (file: string) => (file === first ? 400 : exempt(file));
  expect(sizeFaults(FILES, linesOf)).toEqual([
    `scripts/folder-order.ts exempts ${first}, which has at most 400 lines or is gone`,
  ]);
});

it('check-folders: tests are no source files, and programs in C are', () => {
  const files = sourceFiles();
  expect(files.filter((file) => file.endsWith('.test.ts'))).toEqual([]);
  expect(files.filter((file) => file.startsWith('agent/')).length).toBeGreaterThan(50);
});
