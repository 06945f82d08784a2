/** The levels of `npm test`, in the order they run. */
import { existsSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export interface TestLevel {
  name: string;
  what: string;
  command: readonly string[];
  /** Why the level cannot run here, or undefined when it can. A level that is skipped always says why. */
  skipReason(): string | undefined;
}

interface VitestLevel {
  name: string;
  what: string;
  include: readonly string[];
  exclude: readonly string[];
  testTimeoutMs: number;
  /** Its files look at what the whole machine has, so that they run one after the other. */
  alone?: boolean;
}

const SUITE_OF_AN_EXTENSION = 'src/**/conformance.test.ts';
/** They start processes and wait for them, beside their source or not: the inner loop is seconds. */
const WITH_PROCESSES = [
  'src/extensions/saas-stub/faults.test.ts',
  'src/extensions/shared/ssh/quote-command.test.ts',
  'src/store/sqlite/database-lock.test.ts',
  'src/store/sqlite/sqlite-store.test.ts',
];

export const vitestLevels: readonly VitestLevel[] = [
  {
    name: 'unit',
    what: 'rules and parts, in memory',
    include: ['src/**/*.test.ts', 'bench/**/*.test.ts', 'scripts/**/*.test.ts'],
    exclude: [SUITE_OF_AN_EXTENSION, ...WITH_PROCESSES],
    testTimeoutMs: 5_000,
  },
  {
    name: 'conformance',
    what: 'one suite against every extension and store',
    include: ['tests/conformance/**/*.test.ts', SUITE_OF_AN_EXTENSION],
    exclude: [],
    testTimeoutMs: 60_000,
  },
  {
    name: 'integration',
    what: 'several parts over real sockets, files and databases',
    include: ['tests/integration/**/*.test.ts', ...WITH_PROCESSES],
    exclude: [],
    testTimeoutMs: 60_000,
  },
  {
    name: 'security',
    what: 'what must be refused is refused',
    include: ['tests/security/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 60_000,
    alone: true,
  },
  {
    name: 'e2e',
    what: 'the shipped commands, as a user runs them',
    include: ['tests/e2e/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 120_000,
  },
  {
    name: 'docs',
    what: 'documents say what the code does',
    include: ['tests/docs/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 60_000,
  },
];

/** Much of a test is waiting for programs that it started: also on two processors, two files run at a time. */
const AT_ONCE = Math.max(2, availableParallelism());

const always = () => undefined;

function check(name: string, what: string, ...command: string[]): TestLevel {
  return { name, what, command, skipReason: always };
}

function vitest(name: string): TestLevel {
  const level = vitestLevels.find((candidate) => candidate.name === name);
  if (!level) throw new Error(`no vitest level is called ${name}`);
  return {
    name,
    what: level.what,
    command: ['vitest', 'run', '--project', name, `--maxWorkers=${level.alone ? 1 : AT_ONCE}`],
    skipReason() {
      const files = globSync([...level.include], { exclude: [...level.exclude] });
      return files.length > 0 ? undefined : `no tests yet: ${level.include.join(', ')}`;
    },
  };
}

export const testLevels: readonly TestLevel[] = [
  check('typecheck', 'tsc finds no error', 'tsc', '--noEmit'),
  check('build', 'the package builds', 'npm', 'run', '--silent', 'build'),
  check('lint', 'biome: format and lint', 'biome', 'check', '--error-on-warnings'),
  {
    name: 'imports',
    what: 'import directions of the tree',
    command: ['node', 'scripts/check-imports.ts'],
    skipReason: () => (globSync('src/**/*.ts').length > 0 ? undefined : 'no source yet: src/**/*.ts'),
  },
  check('knip', 'no unused file, export or dependency', 'knip'),
  vitest('unit'),
  vitest('conformance'),
  vitest('integration'),
  {
    name: 'simulation',
    what: 'the control plane under seeded faults and crashes',
    command: ['node', 'tests/simulation/run.ts'],
    skipReason: () =>
      existsSync('tests/simulation/run.ts') ? undefined : 'no tests yet: tests/simulation/run.ts',
  },
  vitest('security'),
  vitest('e2e'),
  vitest('docs'),
  {
    name: 'bench',
    what: 'every benchmark runs (few iterations, numbers mean nothing)',
    command: ['node', 'bench/run.ts', 'all', '--smoke', '--json'],
    skipReason: () =>
      globSync('bench/*/**/*.bench.ts').length > 0
        ? undefined
        : 'no benchmarks yet: bench/<area>/<name>.bench.ts',
  },
];
