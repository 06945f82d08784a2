/** Lists the benchmarks: bench/<area>/<name>.bench.ts is "<area>.<name>". */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Benchmark } from './harness.ts';

export function benchmarkName(file: string): string {
  return file.replace(/\.bench\.ts$/, '').replaceAll(/[\\/]/g, '.');
}

export async function loadBenchmarks(folder: string): Promise<Benchmark[]> {
  const files = globSync('*/**/*.bench.ts', { cwd: folder }).sort();
  return Promise.all(files.map((file) => loadBenchmark(folder, file)));
}

async function loadBenchmark(folder: string, file: string): Promise<Benchmark> {
  const { benchmark } = (await import(pathToFileURL(join(folder, file)).href)) as { benchmark?: Benchmark };
  const name = benchmarkName(file);
  if (!benchmark) throw new Error(`${file} does not export "benchmark"`);
  if (benchmark.name !== name) throw new Error(`${file} is called "${benchmark.name}", expected "${name}"`);
  return benchmark;
}

/** Returns the benchmarks called `wanted`, or inside it as an area; "all" is every one. */
export function selectBenchmarks<T extends { name: string }>(benchmarks: readonly T[], wanted: string): T[] {
  if (wanted === 'all') return [...benchmarks];
  return benchmarks.filter(({ name }) => name === wanted || name.startsWith(`${wanted}.`));
}

/** Returns the names that a mistyped one may have meant, nearest first. */
export function suggestNames(names: readonly string[], wanted: string): string[] {
  return names
    .map((name) => ({ name, distance: name.includes(wanted) ? 0 : editDistance(name, wanted) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.ceil(name.length / 3)))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ name }) => name);
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
