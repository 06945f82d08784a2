import type { CapabilityVector } from '../contract/extensions/capability.ts';
import type { Claim } from './conformance/conformance-test.ts';

export interface ConformanceResult {
  readonly name: string;
  readonly claim: Claim;
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'not_claimed';
  readonly detail: string;
}

export interface ConformanceReport {
  readonly extensionId: string;
  readonly capabilities: CapabilityVector;
  readonly results: readonly ConformanceResult[];
}

function claimedAs(claim: Claim, vector: CapabilityVector): string {
  switch (claim) {
    case 'contract':
    case 'lifecycle':
    case 'abort':
    case 'refusal':
    case 'host':
      return 'owed';
    case 'credentials':
    case 'resources':
      return vector[claim].join(', ') || 'no';
    case 'pause':
    case 'snapshot':
    case 'dead_man':
      return vector[claim];
    default:
      return vector[claim] ? 'yes' : 'no';
  }
}

function verdictOf(results: readonly ConformanceResult[]): string {
  const count = (outcome: ConformanceResult['outcome']) =>
    results.filter((one) => one.outcome === outcome).length;
  const [passed, failed, skipped] = [count('passed'), count('failed'), count('skipped')];
  if (failed > 0) return `BROKEN: ${failed} of ${passed + failed + skipped} failed`;
  if (passed + skipped === 0) return '—';
  if (skipped > 0)
    return `${passed === 0 ? 'unproven' : 'partly proven'}: ${passed} passed, ${skipped} skipped`;
  return `proven by ${passed}`;
}

export function isConforming(report: ConformanceReport): boolean {
  return report.results.every(({ outcome }) => outcome !== 'failed');
}

/** Formats claimed against proven, one line for each claim, then failures and skipped tests with their reasons. */
export function formatReport(report: ConformanceReport): string {
  const claims = [...new Set(report.results.map(({ claim }) => claim))];
  const rows = claims.map((claim) => {
    const verdict = verdictOf(report.results.filter((result) => result.claim === claim));
    return [claim, claimedAs(claim, report.capabilities), verdict];
  });
  const widths = [0, 1].map((column) => Math.max(8, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const told = (outcome: ConformanceResult['outcome'], mark: string) =>
    report.results
      .filter((result) => result.outcome === outcome)
      .map(({ name, detail }) => `${mark} ${name}\n    ${detail.replaceAll('\n', '\n    ')}`);
  return [
    `${report.extensionId} ${isConforming(report) ? 'conforms' : 'does not conform'}`,
    '',
    line(['claim', 'claimed', 'proven']),
    ...rows.map(line),
    '',
    ...told('failed', '✗'),
    ...told('skipped', '○'),
  ]
    .join('\n')
    .trimEnd();
}
