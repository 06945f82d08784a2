/** Reads the lists of `SCOPE.md` as data: `- **Title**: text with `names` in it.` */
import { readFileSync } from 'node:fs';
import path from 'node:path';

interface ScopeItem {
  readonly title: string;
  readonly text: string;
  /** Names that stand in backticks. */
  readonly names: readonly string[];
}

/** Returns the items of the section with this heading. */
export function listOf(heading: string): ScopeItem[] {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../SCOPE.md'), 'utf8');
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`SCOPE.md has no section "${heading}".`);
  return [...section.matchAll(/^- \*\*([^*]+)\*\*: ((?:.|\n {2})+)/gm)].map(([, title = '', text = '']) => ({
    title,
    text,
    names: [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  }));
}
