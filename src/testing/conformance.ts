/**
 * Tests of the contract in `core/ports/extension.ts`, which any test runner can run on any extension.
 */

import type { ConformanceOptions } from './conformance/conformance-options.ts';
import type { ConformanceTest } from './conformance/conformance-test.ts';
import { SkippedTest } from './conformance/conformance-test.ts';
import { Subject } from './conformance/subject.ts';
import { abortTests } from './conformance/tests/abort-tests.ts';
import { backgroundTests } from './conformance/tests/background-tests.ts';
import { confinementTests } from './conformance/tests/confinement-tests.ts';
import { contractTests } from './conformance/tests/contract-tests.ts';
import { deadManTests } from './conformance/tests/dead-man-tests.ts';
import { execTests } from './conformance/tests/exec-tests.ts';
import { fileTests } from './conformance/tests/file-tests.ts';
import { lifecycleTests } from './conformance/tests/lifecycle-tests.ts';
import { networkTests } from './conformance/tests/network-tests.ts';
import { pauseTests } from './conformance/tests/pause-tests.ts';
import { portTests } from './conformance/tests/port-tests.ts';
import { refusalTests } from './conformance/tests/refusal-tests.ts';
import { resourceTests } from './conformance/tests/resource-tests.ts';
import { secretTests } from './conformance/tests/secret-tests.ts';
import { serviceTests } from './conformance/tests/service-tests.ts';
import { snapshotTests } from './conformance/tests/snapshot-tests.ts';
import { terminalTests } from './conformance/tests/terminal-tests.ts';
import { watchTests } from './conformance/tests/watch-tests.ts';
import type { ConformanceReport, ConformanceResult } from './conformance-report.ts';

export function conformanceSuite(): readonly ConformanceTest[] {
  return [
    ...contractTests,
    ...lifecycleTests,
    ...abortTests,
    ...execTests,
    ...backgroundTests,
    ...terminalTests,
    ...fileTests,
    ...confinementTests,
    ...watchTests,
    ...portTests,
    ...serviceTests,
    ...pauseTests,
    ...snapshotTests,
    ...deadManTests,
    ...secretTests,
    ...networkTests,
    ...resourceTests,
    ...refusalTests,
  ];
}

/** Returns why a test is not run on this extension, or `null` when it is. */
function leftOut(test: ConformanceTest, subject: Subject): ConformanceResult | null {
  const { name, claim } = test;
  if (!test.applies(subject.capabilities)) return { name, claim, outcome: 'not_claimed', detail: '' };
  const reason = subject.options.skip?.[name];
  if (reason !== undefined) return { name, claim, outcome: 'skipped', detail: reason };
  if (!test.needsShell || subject.options.shell !== false) return null;
  return { name, claim, outcome: 'skipped', detail: 'There is no shell inside.' };
}

async function runOne(test: ConformanceTest, subject: Subject): Promise<ConformanceResult> {
  const { name, claim } = test;
  const out = leftOut(test, subject);
  if (out !== null) return out;
  try {
    await test.run(subject);
    return { name, claim, outcome: 'passed', detail: '' };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    if (error instanceof SkippedTest) return { name, claim, outcome: 'skipped', detail };
    return { name, claim, outcome: 'failed', detail };
  }
}

/** Run of the suite on one extension, from its creation to the proof that no trace is left. */
class ConformanceRun {
  readonly #options: ConformanceOptions;
  #subject: Subject | null = null;
  #cleanup: () => Promise<void> = async () => {};
  #hostBefore: string | null = null;

  constructor(options: ConformanceOptions) {
    this.#options = options;
  }

  get subject(): Subject {
    if (this.#subject === null) throw new Error('The run has not begun.');
    return this.#subject;
  }

  async begin(): Promise<void> {
    this.#hostBefore = (await this.#options.hostSnapshot?.()) ?? null;
    const { extension, cleanup } = await this.#options.create();
    this.#cleanup = cleanup;
    this.#subject = new Subject(extension, this.#options);
  }

  async run(test: ConformanceTest): Promise<ConformanceResult> {
    return await runOne(test, this.subject);
  }

  /** Removes everything and checks that the host is as it was. */
  async end(): Promise<ConformanceResult[]> {
    const results: ConformanceResult[] = [];
    const note = async (name: string, work: () => Promise<void>) => {
      const outcome = await work().then(
        () => ({ outcome: 'passed', detail: '' }) as const,
        (error: unknown) => ({ outcome: 'failed', detail: String(error) }) as const,
      );
      results.push({ name: `host: ${name}`, claim: 'host', ...outcome });
    };
    if (this.#subject !== null) await note('everything could be removed', () => this.subject.sweep());
    await this.#subject?.extension.close?.();
    await this.#cleanup();
    const before = this.#hostBefore;
    if (before !== null) {
      await note('it is as it was before', async () => {
        const after = await this.#options.hostSnapshot?.();
        if (after !== before) throw new Error(`Before:\n${before}\nAfter:\n${after}`);
      });
    }
    return results;
  }
}

export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const run = new ConformanceRun(options);
  await run.begin();
  const { capabilities, extension } = run.subject;
  const results: ConformanceResult[] = [];
  try {
    for (const test of conformanceSuite()) results.push(await run.run(test));
  } finally {
    results.push(...(await run.end()));
  }
  return { extensionId: extension.header.id, capabilities, results };
}

/** The part of a test runner’s API that the suite uses: vitest’s, jest’s and node:test’s fit. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown;
  it(
    name: string,
    body: (context?: { skip?(note?: string): void }) => Promise<void>,
    timeoutMs?: number,
  ): unknown;
  beforeAll(body: () => Promise<void>, timeoutMs?: number): unknown;
  afterAll(body: () => Promise<void>, timeoutMs?: number): unknown;
}

/** Registers every test of the suite with a test runner. */
export function describeConformance(
  runner: TestRunner,
  name: string,
  options: ConformanceOptions & { readonly timeoutMs?: number },
): void {
  const { timeoutMs = 120_000 } = options;
  runner.describe(`${name} conforms`, () => {
    const run = new ConformanceRun(options);
    runner.beforeAll(() => run.begin(), timeoutMs);
    runner.afterAll(async () => {
      const failed = (await run.end()).filter(({ outcome }) => outcome === 'failed');
      if (failed.length > 0)
        throw new Error(failed.map(({ name: what, detail }) => `${what}: ${detail}`).join('\n'));
    }, timeoutMs);
    for (const test of conformanceSuite()) {
      runner.it(
        test.name,
        async (context) => {
          const { outcome, detail } = await run.run(test);
          if (outcome === 'failed') throw new Error(detail);
          if (outcome !== 'passed')
            context?.skip?.(outcome === 'not_claimed' ? 'It is not declared.' : detail);
        },
        timeoutMs,
      );
    }
  });
}
