/** Levels of `npm test`, in the order of the report; `test-run/schedule.ts` decides which run at the same time. */
import { existsSync, globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export interface TestLevel {
  name: string;
  what: string;
  command: readonly string[];
  /**
   * Company of the level: `checks` run beside each other; levels `in turn` one after the other, with those in the
   * `background` behind them at the least priority; `alone` a level that looks at the whole machine, or measures it.
   */
  company: 'checks' | 'in turn' | 'background' | 'alone';
  /** Repetition after a failure, alone on the machine. A level that depends on nothing but the sources is never repeated. */
  again: 'files' | 'whole' | 'never';
  /** Limit of a level: several times its duration on a slow machine, for a program that hangs. */
  limitMinutes: number;
  /** Returns why the level cannot run here, or undefined when it can. A skipped level always has a reason. */
  skipReason(): string | undefined;
}

interface VitestLevel {
  name: string;
  what: string;
  include: readonly string[];
  exclude: readonly string[];
  testTimeoutMs: number;
  limitMinutes: number;
  /** Files of the level look at the whole machine, so that they run one after the other. */
  alone?: boolean;
}

const SUITE_OF_AN_EXTENSION = 'src/**/conformance.test.ts';
/** Files that start processes and wait for them, beside their source or not: the inner loop is seconds. */
const WITH_PROCESSES = [
  'src/extensions/local/host/host-canary.test.ts',
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
    testTimeoutMs: 20_000,
    limitMinutes: 10,
  },
  {
    name: 'conformance',
    what: 'one suite against every extension and store',
    include: ['tests/conformance/**/*.test.ts', SUITE_OF_AN_EXTENSION],
    exclude: [],
    testTimeoutMs: 300_000,
    limitMinutes: 40,
  },
  {
    name: 'integration',
    what: 'several parts over real sockets, files and databases',
    include: ['tests/integration/**/*.test.ts', ...WITH_PROCESSES],
    exclude: [],
    testTimeoutMs: 300_000,
    limitMinutes: 40,
  },
  {
    name: 'security',
    what: 'what must be refused is refused',
    include: ['tests/security/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 300_000,
    limitMinutes: 40,
    alone: true,
  },
  {
    name: 'e2e',
    what: 'the shipped commands, as a user runs them',
    include: ['tests/e2e/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 300_000,
    limitMinutes: 40,
  },
  {
    name: 'docs',
    what: 'documents say what the code does',
    include: ['tests/docs/**/*.test.ts'],
    exclude: [],
    testTimeoutMs: 300_000,
    limitMinutes: 40,
  },
];

/** Much of a test is waiting for programs that it started: also on two processors, two files run at a time. */
const AT_ONCE = Math.max(2, availableParallelism());

const always = () => undefined;

function check(name: string, what: string, ...command: string[]): TestLevel {
  return { name, what, command, company: 'checks', again: 'never', limitMinutes: 15, skipReason: always };
}

function vitest(name: string): TestLevel {
  const level = vitestLevels.find((candidate) => candidate.name === name);
  if (!level) throw new Error(`no vitest level is called ${name}`);
  return {
    name,
    what: level.what,
    command: ['vitest', 'run', '--project', name, `--maxWorkers=${level.alone ? 1 : AT_ONCE}`],
    company: level.alone ? 'alone' : 'in turn',
    again: 'files',
    limitMinutes: level.limitMinutes,
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
    ...check('imports', 'import directions of the tree', 'node', 'scripts/check-imports.ts'),
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
    company: 'background',
    again: 'never',
    limitMinutes: 45,
    skipReason: () =>
      existsSync('tests/simulation/run.ts') ? undefined : 'no tests yet: tests/simulation/run.ts',
  },
  {
    name: 'fuzz',
    what: 'frames, archives and requests against sanitized builds, for a short while',
    command: ['node', 'tests/fuzz/run.ts'],
    company: 'in turn',
    again: 'whole',
    limitMinutes: 10,
    skipReason: always,
  },
  vitest('security'),
  vitest('e2e'),
  vitest('docs'),
  {
    name: 'bench',
    what: 'every benchmark runs (few iterations, numbers mean nothing)',
    command: ['node', 'bench/run.ts', 'all', '--smoke', '--json'],
    company: 'alone',
    again: 'whole',
    limitMinutes: 20,
    skipReason: () =>
      globSync('bench/*/**/*.bench.ts').length > 0
        ? undefined
        : 'no benchmarks yet: bench/<area>/<name>.bench.ts',
  },
];
