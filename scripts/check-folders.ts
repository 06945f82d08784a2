/**
 * Checks the rooms by `folder-order.ts`: their folders, which may import which, no cycle of folders (types included),
 * and sizes. `check-imports.ts` gives it what dependency-cruiser saw; the includes of `agent/` are read here.
 */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Room } from './folder-order.ts';
import { INCLUDES_AGAINST_ORDER, LONG_FILES, ROOMS } from './folder-order.ts';

export interface FolderImport {
  readonly from: string;
  readonly to: string;
}

const MOST_FILES = 30;
const MOST_LINES = 400;
const TEST_FILE = /\.test\.ts$/;

/** Longest first, so that `src/extensions/local` is found before `src/extensions`. */
const ROOM_NAMES = Object.keys(ROOMS).sort((a, b) => b.length - a.length);

/** Returns the room of a file; `undefined` for a file of no room. */
function roomOf(file: string): string | undefined {
  return ROOM_NAMES.find((room) => file.startsWith(`${room}/`));
}

/** Returns the folder of a file within its room; `.` for the room itself. */
function placeOf(room: string, file: string): string {
  return path.posix.relative(room, path.posix.dirname(file)) || '.';
}

/** Returns every import of a room that goes against its order. */
export function orderFaults(imports: readonly FolderImport[]): string[] {
  return imports.flatMap(({ from, to }) => {
    const room = roomOf(from);
    if (room === undefined || room !== roomOf(to)) return [];
    const order = (ROOMS[room] as Room).folders.map(({ place }) => place);
    const [user, used] = [order.indexOf(placeOf(room, from)), order.indexOf(placeOf(room, to))];
    if (user < 0 || used < 0 || used <= user) return [];
    return [
      `${from} → ${to}\n  ${room}: ${order[user]} may not import ${order[used]}, which stands after it`,
    ];
  });
}

/** Returns every folder that has files and is not named, and every one that is named and has none. */
export function nameFaults(files: readonly string[]): string[] {
  const folders = new Set(files.map((file) => path.posix.dirname(file)));
  const named = ROOM_NAMES.flatMap((room) =>
    (ROOMS[room] as Room).folders.map(({ place }) => path.posix.join(room, place)),
  );
  const unnamed = [...folders].filter((folder) => !named.includes(folder)).sort();
  const gone = named.filter((folder) => !folders.has(folder)).sort();
  return [
    ...unnamed.map((folder) => `scripts/folder-order.ts does not name ${folder}`),
    ...gone.map((folder) => `scripts/folder-order.ts names ${folder}, which has no source file`),
  ];
}

/** Returns one line for every set of folders that import each other, directly or by way of others. */
export function folderCycles(imports: readonly FolderImport[]): string[] {
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [user, used] = [path.dirname(from), path.dirname(to)];
    if (user !== used) edges.set(user, (edges.get(user) ?? new Set()).add(used));
  }
  const reachable = (start: string): Set<string> => {
    const seen = new Set<string>();
    const open = [start];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop())
      for (const next of edges.get(folder) ?? [])
        if (!seen.has(next)) {
          seen.add(next);
          open.push(next);
        }
    return seen;
  };
  const reach = new Map([...edges.keys()].map((folder) => [folder, reachable(folder)] as const));
  const inCycle = [...reach].filter(([folder, seen]) => seen.has(folder)).map(([folder]) => folder);
  const named = new Set<string>();
  return inCycle.flatMap((folder) => {
    if (named.has(folder)) return [];
    const cycle = inCycle.filter((other) => reach.get(folder)?.has(other) && reach.get(other)?.has(folder));
    for (const other of cycle) named.add(other);
    return [`folders import each other: ${cycle.sort().join(', ')}`];
  });
}

/** Returns the source files of rooms, from the root of the repository. */
export function sourceFiles(): string[] {
  return globSync(['src/**/*.ts', 'agent/**/*.{c,h}'])
    .filter((file) => !TEST_FILE.test(file) && !file.startsWith('agent/build/'))
    .sort();
}

/** Returns folders with too many source files and files with too many lines. */
export function sizeFaults(files: readonly string[], linesOf: (file: string) => number): string[] {
  const counts = new Map<string, number>();
  for (const file of files) counts.set(path.dirname(file), (counts.get(path.dirname(file)) ?? 0) + 1);
  const crowded = [...counts]
    .filter(([, count]) => count > MOST_FILES)
    .map(([folder, count]) => `${folder}: ${count} source files, at most ${MOST_FILES}: cut it by noun`);
  const tooLong = files.filter((file) => linesOf(file) > MOST_LINES);
  const long = tooLong
    .filter((file) => !LONG_FILES.includes(file))
    .map((file) => `${file}: ${linesOf(file)} lines, at most ${MOST_LINES}`);
  const needless = LONG_FILES.filter((file) => !tooLong.includes(file)).map(
    (file) => `scripts/folder-order.ts exempts ${file}, which has at most ${MOST_LINES} lines or is gone`,
  );
  return [...crowded, ...long, ...needless];
}

const INCLUDE = /^#include "([^"]+)"/gm;

/** Returns the includes of our own headers. */
export function includesOf(file: string, text: string): FolderImport[] {
  return [...text.matchAll(INCLUDE)].map(([, header = '']) => ({
    from: file,
    to: path.posix.normalize(path.posix.join(path.posix.dirname(file), header)),
  }));
}

/** Returns the includes without those that are known to go against the order, and a fault for each that is gone. */
function knownApart(includes: readonly FolderImport[]): {
  readonly left: FolderImport[];
  readonly gone: string[];
} {
  const textOf = ({ from, to }: FolderImport) => `${from} → ${to}`;
  const all = includes.map(textOf);
  return {
    left: includes.filter((include) => !INCLUDES_AGAINST_ORDER.includes(textOf(include))),
    gone: INCLUDES_AGAINST_ORDER.filter((known) => !all.includes(known)).map(
      (known) => `scripts/folder-order.ts exempts ${known}, which is gone`,
    ),
  };
}

/** Returns what is wrong with the rooms; `imports` are those between files of `src/`. */
export function folderFaults(imports: readonly FolderImport[]): string[] {
  const files = sourceFiles();
  const textOf = (file: string) => readFileSync(file, 'utf8');
  const inC = files.filter((file) => file.startsWith('agent/'));
  const { left, gone } = knownApart(inC.flatMap((file) => includesOf(file, textOf(file))));
  const all = [...imports.filter(({ from }) => !TEST_FILE.test(from)), ...left];
  const linesOf = (file: string) => textOf(file).split('\n').length - 1;
  return [
    ...nameFaults(files),
    ...orderFaults(all),
    ...folderCycles(all),
    ...sizeFaults(files, linesOf),
    ...gone,
  ];
}
