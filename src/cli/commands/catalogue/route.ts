import type { Command } from 'commander';
import type { Explanation } from '../../../client/resources/sandboxes.ts';
import type { RouteCandidate, RoutePlan } from '../../../contract/routing/route.ts';
import type { CreateFlags } from '../../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../../args/create-options.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { moneyText } from '../../output/amounts.ts';
import { useText } from '../../output/expected-use.ts';
import { plainText } from '../../output/plain-text.ts';
import { issueLines } from '../../output/print-error.ts';
import type { Printer } from '../../output/printer.ts';
import { relativeTime, waitText } from '../../output/relative-time.ts';
import type { Column } from '../../output/table.ts';

type Attempt = Explanation['attempts'][number];

/** Describes reasons for the order of a candidate other than cost and waiting. */
function standingText({ rank, score }: RouteCandidate): string {
  const words = [
    rank === 0 && 'first choice',
    score.fallback === 1 && 'fallback',
    score.hosted_elsewhere === 1 && 'hosted elsewhere',
    score.over_preferred_tti === 1 && 'slower than wished',
  ];
  return words.filter(Boolean).join(', ') || '-';
}

function candidateColumns(printer: Printer): Column<RouteCandidate>[] {
  const { green } = printer.out;
  const paint = (text: string, row: RouteCandidate) => (row.rank === 0 ? green(text) : text);
  const money = (amount: number | undefined) => (amount === undefined ? '-' : moneyText(amount));
  return [
    { title: 'RANK', align: 'right', value: (row) => String((row.rank ?? 0) + 1), paint },
    { title: 'EXTENSION', value: (row) => row.extension, paint },
    { title: 'HOST', value: (row) => row.host ?? '-', paint },
    { title: 'PER HOUR', align: 'right', value: (row) => money(row.quote?.micro_usd_per_hour), paint },
    { title: 'EXPECTED', align: 'right', value: (row) => money(row.score.expected_cost_micro_usd), paint },
    {
      title: 'READY IN',
      align: 'right',
      value: ({ standing }) => (standing ? waitText(standing.wait_ms) : '-'),
      paint,
    },
    {
      title: 'SUCCEEDS',
      align: 'right',
      value: ({ standing }) => (standing?.samples ? `${Math.round(standing.success * 100)}%` : '-'),
      paint,
    },
    { title: 'STANDING', cuttable: true, value: standingText, paint },
  ];
}

const ATTEMPT_STATES: Readonly<Record<Attempt['state'], string>> = {
  journalled: 'under way',
  provisioned: 'under way',
  won: 'established',
  condemned: 'being removed',
  gone: 'removed',
};

function outcomeText({ state, hedges, outrun_by: winner }: Attempt): string {
  const words = [
    winner === null ? ATTEMPT_STATES[state] : `outrun by ${winner}, ${ATTEMPT_STATES[state]}`,
    hedges !== null && `started next to ${hedges}`,
  ];
  return words.filter(Boolean).join('; ');
}

function attemptColumns(attempts: readonly Attempt[], now: number): Column<Attempt>[] {
  const recreated = attempts.some(({ generation }) => generation > 1);
  const generation: Column<Attempt> = {
    title: 'GENERATION',
    align: 'right',
    value: (row) => String(row.generation),
  };
  return [
    ...(recreated ? [generation] : []),
    { title: 'ATTEMPT', align: 'right', value: (row) => String(row.n) },
    { title: 'EXTENSION', value: (row) => row.extension },
    { title: 'OUTCOME', value: outcomeText },
    { title: 'STARTED', value: (row) => relativeTime(row.started_at, now) },
    {
      title: 'ERROR',
      cuttable: true,
      value: (row) => (row.error ? `${row.error.detail} (${row.error.code})` : '-'),
    },
  ];
}

function printExcluded(printer: Printer, candidates: readonly RouteCandidate[]): void {
  const excluded = candidates.filter(({ rank }) => rank === null);
  const hosts = candidates.flatMap(({ extension, excluded_hosts = [] }) =>
    excluded_hosts.map(({ host, detail }) => [`  ${extension} on ${host}`, detail] as const),
  );
  if (excluded.length + hosts.length === 0) return;
  printer.line('');
  printer.line(printer.out.dim('Not used, and why'));
  const backends = excluded.map(
    ({ extension, excluded_by }) =>
      [`  ${extension}`, excluded_by.map(({ detail }) => detail).join('\n')] as const,
  );
  printer.details([...backends, ...hosts]);
}

/** Lists all issues of an attempt whose error names only the first. */
function printIssues(printer: Printer, attempts: readonly Attempt[]): void {
  for (const { n, error } of attempts) {
    if ((error?.issues?.length ?? 0) < 2) continue;
    printer.line('');
    printer.line(printer.out.dim(`What stood in the way of attempt ${n}`));
    for (const line of issueLines(error?.issues)) printer.line(`  ${plainText(line)}`);
  }
}

/** Explains the choice of a host among several; empty for the machine of the server and for vendors. */
function placementText({ candidates }: RoutePlan): string | null {
  const first = candidates.find(({ rank }) => rank === 0);
  return (first?.host ?? 'local') === 'local' ? null : (first?.placement ?? null);
}

function printPlan(printer: Printer, plan: RoutePlan): void {
  printer.details([
    ['decision', plan.reason],
    ['placement', placementText(plan)],
    ['strategy', plan.strategy],
    ['pinned', plan.pinned],
    ['expected use', plan.expected ? useText(plan.expected) : null],
    ['second attempt', plan.hedge?.reason ?? null],
    ['caution', plan.panic ? 'Every backend that fits looked broken, so that was ignored.' : null],
  ]);
  const ranked = plan.candidates.filter(({ rank }) => rank !== null);
  if (ranked.length > 0) {
    printer.line('');
    printer.table(candidateColumns(printer), ranked);
  }
  printExcluded(printer, plan.candidates);
}

export function define(command: Command, invocation: Invocation): void {
  command
    .command('explain')
    .description('Show why a sandbox runs where it does')
    .argument('<id>', 'the sandbox')
    .action(async (id: string) => {
      const { printer } = invocation;
      const explanation = await (await invocation.client()).sandboxes.route(id);
      printer.result(explanation, () => {
        printPlan(printer, explanation.plan);
        if (explanation.attempts.length === 0) return;
        printer.line('');
        printer.table(attemptColumns(explanation.attempts, Date.now()), explanation.attempts);
        printIssues(printer, explanation.attempts);
      });
    });
  addCreateOptions(
    command.command('resolve').description('Where a create would go, without creating anything'),
  ).action(async (flags: CreateFlags) => {
    const { printer } = invocation;
    const plan = await (await invocation.client()).routes.resolve(createRequestOf(flags));
    printer.result(plan, () => printPlan(printer, plan));
  });
}
