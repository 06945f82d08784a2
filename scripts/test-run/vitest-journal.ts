import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestModule, TestSpecification } from 'vitest/node';
import type { Failure, JournalEntry } from './journal.ts';

/** The reporter that keeps the journal of a run. Files are named from the root of the checkout. */
export class VitestJournal implements Reporter {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#write({ kind: 'meant', files: specifications.map(({ moduleId }) => fromRoot(moduleId)) });
  }

  onTestModuleEnd(module: TestModule): void {
    const { duration, setupDuration, collectDuration } = module.diagnostic();
    this.#write({
      kind: 'ended',
      file: fromRoot(module.moduleId),
      failures: failuresOf(module),
      seconds: (duration + setupDuration + collectDuration) / 1000,
    });
  }

  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[]): void {
    for (const error of errors) {
      const file = error.VITEST_TEST_PATH;
      this.#write({
        kind: 'stray',
        file: typeof file === 'string' ? fromRoot(file) : null,
        message: messageOf(error),
      });
    }
  }

  #write(entry: JournalEntry): void {
    appendFileSync(this.#path, `${JSON.stringify(entry)}\n`);
  }
}

function fromRoot(path: string): string {
  return relative(process.cwd(), path);
}

function failuresOf(module: TestModule): Failure[] {
  const outside = [...module.children.allSuites(), module].flatMap((suite) =>
    suite.errors().map((error) => ({ test: null, message: messageOf(error) })),
  );
  const inside = [...module.children.allTests('failed')].map((test) => ({
    test: test.fullName,
    message: (test.result().errors ?? []).map(messageOf).join('\n'),
  }));
  const found = [...outside, ...inside];
  return found.length === 0 && module.state() === 'failed'
    ? [{ test: null, message: 'failed, and did not say why' }]
    : found;
}

function messageOf({ message, stack }: { message: string; stack?: string | undefined }): string {
  const place = stack
    ?.split('\n')
    .find((line) => line.includes(process.cwd()) && !line.includes('node_modules'));
  return [message, place].filter(Boolean).join('\n');
}
