/** Checks the files of a registry as a federation that indexes it would, each by its form and all against each other. */
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  CapabilityRow,
  FederatedCapability as Entry,
} from '../contract/extensions/federated-capability.ts';
import {
  CapabilityIndex,
  FederatedCapability,
  ListedExtension,
  RepoClassification,
  rowOf,
} from '../contract/extensions/federated-capability.ts';
import type { RegistryFile, RegistryProblem } from '../core/ports/published-registry.ts';
import { checkPriceList, MOST_PROBLEMS } from './price-list.ts';
import { readProfileYaml } from './profiles/profile-yaml.ts';

/** The time for all files together: the server answers other requests between two files, not during one. */
const MOST_MS = 5_000;
const FRONT_MATTER = /^---\r?\n([\s\S]*?)\r?\n---\r?\n/;

interface Found {
  readonly entries: { readonly file: string; readonly entry: Entry }[];
  readonly rows: { readonly file: string; readonly row: CapabilityRow }[];
  readonly extensions: { readonly file: string; readonly id: string }[];
  readonly problems: RegistryProblem[];
}

/** The part of a zod schema that is used here. */
interface Schema<T> {
  safeParse(value: unknown):
    | { readonly success: true; readonly data: T }
    | {
        readonly success: false;
        readonly error: {
          readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
        };
      };
}

/** Parses one document and notes every fault with its line. */
function parsed<T>(schema: Schema<T>, { file, text }: RegistryFile, problems: RegistryProblem[]): T | null {
  const document = readProfileYaml(text, file);
  if (Array.isArray(document)) {
    problems.push(...document.map(({ problem }) => ({ file, problem })));
    return null;
  }
  const result = schema.safeParse(document.value);
  if (result.success) return result.data;
  for (const { path: field, message } of result.error.issues.slice(0, MOST_PROBLEMS)) {
    const { line } = document.locate(field.map((part) => (typeof part === 'number' ? part : String(part))));
    const at = field.length === 0 ? '' : `${field.join('.')}: `;
    problems.push({ file, problem: `${line === null ? '' : `line ${line}: `}${at}${message}` });
  }
  return null;
}

function readEntry({ file, text }: RegistryFile, found: Found): void {
  const [front, yaml = ''] = FRONT_MATTER.exec(text) ?? [];
  if (front === undefined) {
    found.problems.push({ file, problem: 'It has no front matter: a capability begins with a line "---".' });
    return;
  }
  // The line of the first "---" counts, so that lines are those of the file.
  const entry = parsed(FederatedCapability, { file, text: `\n${yaml}` }, found.problems);
  if (entry === null) return;
  if (path.basename(file) !== `${entry.id}.md`)
    found.problems.push({ file, problem: `It speaks of ${entry.id}: name it ${entry.id}.md.` });
  found.entries.push({ file, entry });
}

function readDocument(given: RegistryFile, found: Found): void {
  const { file, text } = given;
  if (/^capabilities:[ \t]*$/m.test(text) && /^domain:/m.test(text)) {
    const index = parsed(CapabilityIndex, given, found.problems);
    found.rows.push(...(index?.capabilities ?? []).map((row) => ({ file, row })));
  } else if (/^capabilities:[ \t]*$/m.test(text)) {
    const extension = parsed(ListedExtension, given, found.problems);
    if (extension === null) return;
    if (path.basename(file) !== `${extension.id}.yaml`)
      found.problems.push({ file, problem: `It speaks of ${extension.id}: name it ${extension.id}.yaml.` });
    found.extensions.push({ file, id: extension.id });
  } else if (/^repo_classification:/m.test(text)) {
    parsed(RepoClassification, given, found.problems);
  } else {
    found.problems.push(
      ...checkPriceList(path.basename(file), text).map(({ problem }) => ({ file, problem })),
    );
  }
}

/** Names that occur more than once. */
function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) < at))];
}

function compareIndex({ entries, rows }: Found): RegistryProblem[] {
  const problems: RegistryProblem[] = [];
  for (const id of repeated(rows.map(({ row }) => row.id)))
    problems.push({ file: rows[0]?.file ?? '', problem: `It lists ${id} more than once.` });
  for (const { file, entry } of entries) {
    const listed = rows.find(({ row }) => row.id === entry.id);
    if (listed === undefined) {
      problems.push({ file, problem: `No index lists ${entry.id}, so a search cannot find it.` });
      continue;
    }
    const expected = rowOf(entry, listed.row.path);
    const differing = Object.entries(expected).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(listed.row[name as keyof CapabilityRow]),
    );
    for (const [name] of differing)
      problems.push({ file: listed.file, problem: `${entry.id}: ${name} is not that of the entry.` });
    if (!`/${file}`.endsWith(`/${listed.row.path.replace(/^registry\//, '')}`))
      problems.push({ file: listed.file, problem: `${entry.id}: path does not lead to ${file}.` });
  }
  const known = new Set(entries.map(({ entry }) => entry.id));
  for (const { file, row } of rows)
    if (!known.has(row.id)) problems.push({ file, problem: `There is no entry of ${row.id}.` });
  return problems;
}

function compareExtensions({ entries, extensions }: Found): RegistryProblem[] {
  const there = new Set(extensions.map(({ id }) => id));
  const named = new Set(entries.flatMap(({ entry }) => entry.extensions));
  return [
    ...entries.flatMap(({ file, entry }) =>
      entry.extensions
        .filter((id) => !there.has(id))
        .map((id) => ({ file, problem: `It names ${id}, of which there is no vector.` })),
    ),
    ...extensions
      .filter(({ id }) => !named.has(id))
      .map(({ file, id }) => ({ file, problem: `No capability names ${id}.` })),
  ];
}

/**
 * Returns what is wrong with each file. Where a capability entry is among them they are taken for a whole registry: the
 * index lists every entry as it is, and entries and vectors name each other.
 */
export async function checkRegistryFiles(files: readonly RegistryFile[]): Promise<RegistryProblem[]> {
  const found: Found = { entries: [], rows: [], extensions: [], problems: [] };
  const startedAt = performance.now();
  for (const given of files) {
    if (performance.now() - startedAt > MOST_MS) {
      found.problems.push({
        file: given.file,
        problem: 'It was not read: the files before it took too long.',
      });
      continue;
    }
    if (given.file.endsWith('.md')) readEntry(given, found);
    else readDocument(given, found);
    await nextTurn();
  }
  const isWhole = files.length > 1 && found.entries.length > 0;
  if (!isWhole) return found.problems;
  return [...found.problems, ...compareIndex(found), ...compareExtensions(found)];
}
