/** The conformance suite on ext.local in a process of its own (`tests/conformance/local-suite.ts`), and what it says. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { IsolationLevel } from '../../src/contract/extensions/capability.ts';
import type { LocalOptions } from '../../src/extensions/local/host/options.ts';
import { formatReport, isConforming } from '../../src/testing/conformance-report.ts';
import type { OrdinaryUser } from './ordinary-user.ts';

type SuiteReport = Parameters<typeof formatReport>[0];

const ROOT = join(import.meta.dirname, '..', '..');
const SUITE = join('tests', 'conformance', 'local-suite.ts');

/** Fails with the report where something in it failed. */
function readReport(told: { code: number | null; stdout: string; stderr: string }): SuiteReport {
  expect(told.code, told.stderr).toBe(0);
  const report = JSON.parse(told.stdout) as SuiteReport;
  expect(isConforming(report), formatReport(report)).toBe(true);
  return report;
}

export function outcomeOf(report: SuiteReport, name: string): string | undefined {
  return report.results.find((result) => result.name === name)?.outcome;
}

interface AtLevel {
  readonly level: IsolationLevel;
  /** Names of tests, each with the reason why it is left out. */
  readonly skip: Readonly<Record<string, string>>;
}

/** As whoever we are. */
export async function suiteHere(options: LocalOptions, at?: AtLevel): Promise<SuiteReport> {
  const words = at === undefined ? [] : [at.level, JSON.stringify(at.skip)];
  const child = spawn(process.execPath, [join(ROOT, SUITE), JSON.stringify(options), ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return readReport({ code, ...texts });
}

export async function suiteAs(user: OrdinaryUser, options: Partial<LocalOptions> = {}): Promise<SuiteReport> {
  const argument = JSON.stringify({ directory: join(user.tmp, 'local'), ...options });
  return readReport(await user.run([user.node, join(user.clone, SUITE), argument]));
}
