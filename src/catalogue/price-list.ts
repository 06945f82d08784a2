import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ListedPrice } from '../contract/money/price-list.ts';
import { PriceListEntry } from '../contract/money/price-list.ts';
import type { LatencyPrior } from '../core/health/peak-latency.ts';
import { readProfileYaml } from './profiles/profile-yaml.ts';

export const MOST_PROBLEMS = 50;

export interface PriceListProblem {
  readonly file: string;
  readonly problem: string;
}

export interface PriceList {
  readonly entries: readonly PriceListEntry[];
  /** The faults of files: a faulty file leaves the others in use. */
  readonly problems: readonly PriceListProblem[];
}

/** Reads `registry/prices/`: curated figures, one file per vendor. */
export async function loadPriceList(folder: string): Promise<PriceList> {
  const entries: PriceListEntry[] = [];
  const problems: PriceListProblem[] = [];
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  for (const file of files) {
    const { entry, problems: found } = readEntry(file, await readFile(path.join(folder, file), 'utf8'));
    if (entry) entries.push(entry);
    problems.push(...found);
  }
  return { entries, problems };
}

/** Returns the faults of a price list, field by field. */
export function checkPriceList(file: string, text: string): readonly PriceListProblem[] {
  return readEntry(file, text).problems;
}

interface ReadEntry {
  readonly entry: PriceListEntry | null;
  readonly problems: readonly PriceListProblem[];
}

function readEntry(file: string, text: string): ReadEntry {
  const document = readProfileYaml(text, file);
  if (Array.isArray(document)) {
    return { entry: null, problems: document.map(({ problem }) => ({ file, problem })) };
  }
  const parsed = PriceListEntry.safeParse(document.value);
  if (parsed.success) return { entry: parsed.data, problems: problemsOf(file, parsed.data) };
  const problems = parsed.error.issues.slice(0, MOST_PROBLEMS).map(({ path: field, message }) => {
    const { line } = document.locate(field.map((part) => (typeof part === 'number' ? part : String(part))));
    return { file, problem: `${line === null ? '' : `line ${line}: `}${field.join('.')}: ${message}` };
  });
  return { entry: null, problems };
}

function problemsOf(file: string, entry: PriceListEntry): PriceListProblem[] {
  const problems: PriceListProblem[] = [];
  if (file !== `${entry.provider}.yaml`) problems.push({ file, problem: `It speaks of ${entry.provider}.` });
  const days = entry.prices.map(({ effective_from }) => effective_from);
  if (days.some((day, index) => index > 0 && day <= (days[index - 1] as string))) {
    problems.push({ file, problem: 'Its prices are not in the order they took effect.' });
  }
  const versions = entry.prices.map(({ price }) => price.version);
  if (new Set(versions).size < versions.length) {
    problems.push({ file, problem: 'Two of its prices have one version.' });
  }
  return problems;
}

/** Returns the prices of that day; `null` before the first listed price. */
export function priceOn(entry: PriceListEntry, day: string): ListedPrice | null {
  return entry.prices.findLast(({ effective_from }) => effective_from <= day) ?? null;
}

/** Returns the speed to assume of a backend until it is measured here; `null` when the list has no measurement. */
export function latencyPriorOf(entry: PriceListEntry): LatencyPrior | null {
  const alone = entry.latency.find(({ load }) => load === 'alone');
  const burst = entry.latency.find(({ load }) => load === 'burst');
  return alone ? { aloneMs: alone.median_ms, burstMs: (burst ?? alone).median_ms } : null;
}
