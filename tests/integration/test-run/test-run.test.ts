/** The runner of `npm test` on real runs of vitest, each of which goes wrong in a way of its own. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TestLevel } from '../../../scripts/test-levels.ts';
import { runEverything } from '../../../scripts/test-run/run-everything.ts';
import { LevelRun } from '../../../scripts/test-run/run-level.ts';

const root = join(import.meta.dirname, '../../..');
const journal = join(root, 'scripts/test-run/vitest-journal.ts');

let folder: string;
beforeEach(() => {
  // In the checkout, so that its files find vitest.
  folder = mkdtempSync(join(root, 'node_modules/.test-run-'));
  const config = `import { VitestJournal } from ${JSON.stringify(journal)};
    export default { test: { reporters: ['default', new VitestJournal(process.env.TEST_JOURNAL)], include: ['*.test.ts'] } };`;
  writeFileSync(join(folder, 'vitest.config.ts'), config);
  write('good', "test('is good', () => {});");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, body: string): void {
  const head = "import { existsSync, writeFileSync } from 'node:fs'; import { expect, test } from 'vitest';";
  writeFileSync(join(folder, `${name}.test.ts`), `${head}\n${body}\n`);
}

function level(parts: Partial<TestLevel> = {}): TestLevel {
  return {
    name: 'trial',
    what: 'a trial',
    command: ['vitest', 'run', '--root', folder, '--maxWorkers=2'],
    company: 'in turn',
    again: 'files',
    limitMinutes: 3,
    skipReason: () => undefined,
    ...parts,
  };
}

/** Everything twice where it fails, and what was said. */
async function everything(parts: Partial<TestLevel> = {}) {
  const said: string[] = [];
  const [outcome] = await runEverything([level(parts)], folder, (text) => said.push(text));
  if (outcome === undefined) throw new Error('the level has no outcome');
  const told = outcome.troubles.map(({ file, failures, again }) => ({
    file: file?.split('/').at(-1),
    failures,
    again,
  }));
  return { ...outcome, told, said: said.join('\n') };
}

const mark = () => JSON.stringify(join(folder, 'mark'));
const OTHER_TIME = `const second = existsSync(MARK); writeFileSync(MARK, '');`;
const once = (body: string) => OTHER_TIME.replaceAll('MARK', mark()) + body;

test('a file that passes alone passes, and the report names it', async () => {
  write('shaky', once("test('holds', () => expect(second).toBe(true));"));
  const { verdict, told, said, files } = await everything();
  expect(verdict).toBe('passed');
  expect(told).toEqual([
    {
      file: 'shaky.test.ts',
      failures: [{ test: 'holds', message: expect.stringContaining('expected false to be true') }],
      again: undefined,
    },
  ]);
  expect(files).toHaveLength(2);
  // The second time it ran by itself.
  expect(said.split('once more and alone')[1]).toMatch(/Test Files .*1 passed.*\(1\)/);
});

test('a file that fails twice fails; also one that fails in a hook, or before any test', async () => {
  write('bad', "test('never holds', () => expect(1).toBe(2));");
  write(
    'hook',
    "import { afterAll } from 'vitest'; afterAll(() => { throw new Error('in a hook'); }); test('t', () => {});",
  );
  write('import', "import './nowhere.ts';");
  const { verdict, told } = await everything();
  expect(verdict).toBe('failed');
  expect(new Map(told.map(({ file, again }) => [file, again]))).toEqual(
    new Map([
      ['bad.test.ts', [{ test: 'never holds', message: expect.stringContaining('expected 1 to be 2') }]],
      ['hook.test.ts', [{ test: null, message: expect.stringContaining('in a hook') }]],
      ['import.test.ts', [{ test: null, message: expect.stringContaining('nowhere.ts') }]],
    ]),
  );
});

test('an error that no test threw is its file’s', async () => {
  write('stray', once("test('t', () => { if (!second) void Promise.reject(new Error('nobody waits')); });"));
  const { verdict, told } = await everything();
  expect(verdict).toBe('passed');
  expect(told).toMatchObject([
    { file: 'stray.test.ts', failures: [{ test: null, message: expect.stringContaining('nobody waits') }] },
  ]);
});

test('a worker that dies leaves its file without a result', async () => {
  write('dies', once("test('t', () => { if (!second) process.kill(process.pid, 'SIGKILL'); });"));
  const { verdict, told } = await everything();
  expect(verdict).toBe('passed');
  expect(told.map(({ file }) => file)).toEqual(['dies.test.ts']);
});

test('vitest that hangs is stopped with its workers, and what had no result fails', async () => {
  const pids = join(folder, 'pid');
  write(
    'hangs',
    `writeFileSync(${JSON.stringify(pids)}, String(process.pid)); test('t', () => { for (;;); });`,
  );
  const run = new LevelRun(level({ limitMinutes: 20 / 60 }), mkdtempSync(join(tmpdir(), 'test-run-')));
  const { ended, troubles } = await run.run(null);
  rmSync(join(run.logFile, '..', '..'), { recursive: true });
  expect(ended.stoppedAfterMs).toBe(20_000);
  expect(troubles.map(({ file }) => file?.split('/').at(-1))).toContain('hangs.test.ts');
  const pid = Number(readFileSync(pids, 'utf8'));
  await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 30_000 }).toBe(false);
});

test('a command that is no vitest: repeated as a whole, or never', async () => {
  const command = ['sh', '-c', `test -e ${mark()} || { echo wrong; touch ${mark()}; exit 3; }`];
  const { verdict, told } = await everything({ command, again: 'whole' });
  expect(verdict).toBe('passed');
  expect(told[0]?.failures).toEqual([{ test: null, message: 'exit 3\nwrong' }]);
  rmSync(join(folder, 'mark'));
  expect(await everything({ command, again: 'never' })).toMatchObject({
    verdict: 'failed',
    note: '1 failed',
  });
});

test('a background level yields to every other', async () => {
  // A task that the kernel does not share out by session has no such line.
  const look = 'a=$(cat /proc/$$/autogroup 2>/dev/null); test "$a" || a="nice 19"';
  const script = `for i in $(seq 300); do ${look}; case $a in *"nice 19") break; esac; sleep 0.1; done; ps -o ni= -p $$; echo "$a"`;
  const command = ['sh', '-c', script];
  const { said } = await everything({ command, company: 'background', again: 'never' });
  expect(said).toMatch(/^ *19$/m);
  expect(said).toMatch(/nice 19$/m);
});
