/** npm run -s bench -- NAME [--json] [--smoke] | --list */
import { parseArgs } from 'node:util';
import { loadBenchmarks, selectBenchmarks, suggestNames } from './catalogue.ts';
import type { Benchmark, BenchmarkContext, Result } from './harness.ts';
import { createContext } from './harness.ts';
import { resultTable } from './result-table.ts';

const USAGE = `usage: npm run -s bench -- NAME [--json]   run one benchmark, an area ("control") or "all"
       npm run -s bench -- --list          what there is`;

const options = readOptions();
const benchmarks = await loadBenchmarks(import.meta.dirname);
if (options.list) list();
else await run();

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { json: { type: 'boolean' }, smoke: { type: 'boolean' }, list: { type: 'boolean' } },
    });
    const [name] = positionals;
    if (!values.list && (name === undefined || positionals.length > 1)) return refuse(USAGE);
    return {
      name: name ?? '',
      json: values.json === true,
      smoke: values.smoke === true,
      list: values.list === true,
    };
  } catch (error) {
    return refuse(`${(error as Error).message}\n${USAGE}`);
  }
}

function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}

function list(): void {
  if (benchmarks.length === 0) console.error('no benchmarks yet: bench/<area>/<name>.bench.ts');
  const width = Math.max(0, ...benchmarks.map(({ name }) => name.length));
  for (const { name, description } of benchmarks) {
    console.log(
      options.json ? JSON.stringify({ name, description }) : `${name.padEnd(width)}  ${description}`,
    );
  }
}

async function run(): Promise<void> {
  const selected = selectBenchmarks(benchmarks, options.name);
  if (selected.length === 0) {
    const names = benchmarks.map(({ name }) => name);
    const suggestions = suggestNames(names, options.name);
    const hint = suggestions.length > 0 ? `did you mean ${suggestions.join(', ')}?` : 'see --list';
    refuse(`no benchmark is called "${options.name}"; ${hint}`);
  }
  const context = createContext(options.smoke);
  for (const benchmark of selected) await runOne(benchmark, context);
}

async function runOne(benchmark: Benchmark, context: BenchmarkContext): Promise<void> {
  if (!options.json) console.log(`${benchmark.name}: ${benchmark.description}`);
  const results: Result[] = [];
  for await (const result of await benchmark.run(context)) {
    if (options.json) console.log(JSON.stringify(result));
    results.push(result);
  }
  if (results.length === 0) throw new Error(`${benchmark.name} gave no result`);
  if (!options.json) console.log(`${resultTable(results)}\n`);
}
