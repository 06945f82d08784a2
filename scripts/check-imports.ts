/**
 * Checks the import directions of `.dependency-cruiser.mjs`. A cruiser that cannot read TypeScript reports success
 * over nothing, so every source file must have been seen, and at least one import between two of them. Then checks the
 * folders of each room by `folder-order.ts`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { folderFaults } from './check-folders.ts';

interface CruiseResult {
  modules: { source: string; dependencies: { resolved: string }[] }[];
  summary: { violations: { from: string; to: string; rule: { name: string } }[] };
}

const roots = ['src', 'tests', 'bench', 'scripts'].filter((folder) => existsSync(folder));
const config = '.dependency-cruiser.mjs';
const { default: rules } = await import(`../${config}`);

const cruise = spawnSync('depcruise', ['--config', config, '--output-type', 'json', ...roots], {
  encoding: 'utf8',
  maxBuffer: 256 * 1024 * 1024,
  stdio: ['ignore', 'pipe', 'inherit'],
});
if (cruise.error) throw cruise.error;
if (!cruise.stdout.startsWith('{')) {
  console.error(`imports: dependency-cruiser gave no result (exit ${cruise.status})`);
  process.exit(1);
}

const { modules, summary } = JSON.parse(cruise.stdout) as CruiseResult;
const comments = new Map<string, string>(
  rules.forbidden.map((rule: { name: string; comment: string }) => [rule.name, rule.comment]),
);
for (const { from, to, rule } of summary.violations) {
  console.error(`${from} → ${to}\n  ${rule.name}: ${comments.get(rule.name) ?? 'forbidden'}`);
}

const seen = new Set(modules.map(({ source }) => source));
const unseen = globSync('src/**/*.ts').filter((file) => !seen.has(file));
for (const file of unseen) console.error(`${file}: not seen by dependency-cruiser`);

const inSource = modules.filter(({ source }) => source.startsWith('src/'));
const imports = inSource.flatMap(({ dependencies }) => dependencies);
const internal = imports.filter(({ resolved }) => resolved.startsWith('src/'));
if (inSource.length === 0) console.error('imports: saw no module under src/');
if (internal.length === 0) console.error('imports: saw no import between two modules under src/');

const between = inSource.flatMap(({ source, dependencies }) =>
  dependencies
    .filter(({ resolved }) => resolved.startsWith('src/'))
    .map(({ resolved }) => ({ from: source, to: resolved })),
);
const faults = folderFaults(between);
for (const fault of faults) console.error(fault);

console.log(
  `imports: ${inSource.length} modules, ${imports.length} imports, ${summary.violations.length} violations, ${faults.length} faults of folders`,
);
const sound = inSource.length > 0 && internal.length > 0 && unseen.length === 0;
process.exit(sound && faults.length === 0 && summary.violations.length === 0 ? 0 : 1);
