/** Writes the rooms of `docs/architecture.md`, with their folders and their content. The rest of the page is written by hand. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Room } from '../folder-order.ts';
import { ROOMS } from '../folder-order.ts';
import type { Generator } from './generator.ts';
import { table } from './generator.ts';

const FILE = 'docs/architecture.md';
const ROOT = join(import.meta.dirname, '..', '..');
const BEGIN = '<!-- Written by `npm run generate` from scripts/folder-order.ts, to the end of the rooms. -->';
const END = '<!-- End of what is written. -->';

// Through a variable: the compiler would otherwise look for types of the configuration.
const config: string = '../../.dependency-cruiser.mjs';
const { default: rules } = await import(config);

/** Returns the other rooms that a room may import, from the rule that checks it. */
function mayImport(room: string): string {
  const [top, ...inside] = room.split('/');
  if (top !== 'src') return '';
  if (inside[0] === 'main') return 'every room but client';
  if (inside[0] === 'extensions' && inside.length > 1)
    return inside[1] === 'shared' ? 'as `src/extensions`' : 'as `src/extensions`, and `shared`';
  const rule = rules.forbidden.find(({ name }: { name: string }) => name === `${inside[0]}-imports-rooms`);
  return (rule.comment as string).replace(/^.* may import /, '');
}

function folderTable(name: string, { folders }: Room): string {
  const rows = folders.map(({ place, holds }) => [`\`${place === '.' ? name : `${name}/${place}`}\``, holds]);
  return table(['folder', 'holds'], rows);
}

function rooms(): string {
  const all = Object.entries(ROOMS);
  const rows = all.map(([name, { holds }]) => [`\`${name}\``, holds, mayImport(name)]);
  const cut = all.filter(([, { folders }]) => folders.length > 1);
  return [
    table(['room', 'holds', 'may import'], rows),
    ...cut.flatMap(([name, room]) => [`### ${name}`, folderTable(name, room)]),
  ].join('\n\n');
}

export const architecturePage: Generator = {
  file: FILE,
  render() {
    const text = readFileSync(join(ROOT, FILE), 'utf8');
    const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
    if (begin < 0 || end < begin) throw new Error(`${FILE} has no place for the rooms: ${BEGIN} … ${END}`);
    return `${text.slice(0, begin)}${BEGIN}\n\n${rooms()}\n\n${text.slice(end)}`;
  },
};
