import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import { issueLines } from './print-error.ts';
import type { Detail, Printer } from './printer.ts';
import { ageOf, relativeTime, shortDuration, waitText } from './relative-time.ts';
import type { Column } from './table.ts';
import { workspaceColumn } from './workspace-column.ts';

function paintState(printer: Printer, text: string, state: Sandbox['state']): string {
  const { green, yellow, red, dim, cyan } = printer.out;
  if (state === 'ready' || state === 'active') return green(text);
  if (state === 'paused') return cyan(text);
  if (state === 'failed') return red(text);
  return state === 'destroyed' ? dim(text) : yellow(text);
}

function stateText({ state, pause_kind, operation, teardown }: Sandbox): string {
  if (teardown?.stuck_since) return `${state} (stuck)`;
  if (pause_kind !== null) return `${state} (${pause_kind})`;
  return operation === null ? state : `${state} (${operation.kind})`;
}

function pairText(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');
}

export function sandboxColumns(rows: readonly Sandbox[], now: number, printer: Printer): Column<Sandbox>[] {
  return [
    { title: 'ID', value: (row) => row.sandbox_id },
    ...workspaceColumn(rows),
    { title: 'STATE', value: stateText, paint: (text, row) => paintState(printer, text, row.state) },
    { title: 'PROFILE', cuttable: true, value: (row) => row.profile.replace(/^profile\./, '') },
    { title: 'EXTENSION', spare: true, cuttable: true, value: (row) => row.extension ?? '-' },
    { title: 'AGE', value: (row) => ageOf(row.created_at, now) },
    {
      title: 'EXPIRES',
      value: (row) => (row.state === 'destroyed' ? '-' : relativeTime(row.expires_at, now)),
    },
    { title: 'LABELS', spare: true, cuttable: true, value: (row) => pairText(row.labels) },
  ];
}

function reachabilityDetails({ reachability }: Sandbox): Detail[] {
  if (reachability === null) return [];
  const { ssh, tunnel_ref, endpoints, services } = reachability;
  return [
    ['ssh', ssh && `${ssh.user}@${ssh.host}:${ssh.port}`],
    ['tunnel', tunnel_ref],
    ['endpoints', endpoints.map(({ name, port, url }) => `${name} (${port}): ${url}`).join('\n') || null],
    ['services', services.map(({ name, state, health }) => `${name}: ${health ?? state}`).join('\n') || null],
  ];
}

/** Returns the failure with every issue and its remedy. */
function failureText({ detail, code, remedy, issues = [] }: NonNullable<Sandbox['failure']>): string {
  return [detail, ...(issues.length > 1 ? issueLines(issues) : []), `${code}: ${remedy}`].join('\n');
}

/** Details of a sandbox, for `get`. */
export function printSandbox(printer: Printer, sandbox: Sandbox, now: number): void {
  const { failure, teardown, consumer } = sandbox;
  printer.details([
    ['id', sandbox.sandbox_id],
    ['state', stateText(sandbox), (text) => paintState(printer, text, sandbox.state)],
    ['since', relativeTime(sandbox.state_since, now)],
    ['profile', `${sandbox.profile}@${sandbox.profile_version}`],
    ['extension', sandbox.extension],
    ['host', sandbox.host],
    ['isolation', sandbox.isolation],
    ['region', sandbox.region],
    ['generation', sandbox.generation > 1 ? String(sandbox.generation) : null],
    ['scope', sandbox.scope],
    ['created', relativeTime(sandbox.created_at, now)],
    ['active', sandbox.last_activity_at && relativeTime(sandbox.last_activity_at, now)],
    ['expires', sandbox.state === 'destroyed' ? null : relativeTime(sandbox.expires_at, now)],
    ['idle reap', sandbox.idle_reap_seconds === null ? null : shortDuration(sandbox.idle_reap_seconds)],
    ['consumer', pairText(consumer as Record<string, string>) || null],
    ['labels', pairText(sandbox.labels) || null],
    ...reachabilityDetails(sandbox),
    ['exposed', sandbox.exposed_secrets.join(', ') || null],
    ['elevated', sandbox.elevated ? 'yes' : null],
    ['notes', sandbox.notes.join('\n') || null],
    ['failure', failure && failureText(failure)],
    ['failed on', failure?.backend ?? null],
    [
      'teardown',
      teardown && `${teardown.tries} tries${teardown.last_error ? `: ${teardown.last_error}` : ''}`,
    ],
  ]);
}

/** Formats `ready in 0.4s on ext.local, expires in 4h`. */
export function establishedText(sandbox: Sandbox, tookMs: number, now: number): string {
  const took = sandbox.reused ? 'already there' : `${sandbox.state} in ${waitText(tookMs)}`;
  const where =
    sandbox.extension === null ? '' : ` on ${sandbox.extension}${sandbox.host ? `/${sandbox.host}` : ''}`;
  return `${took}${where}, expires ${relativeTime(sandbox.expires_at, now)}`;
}

/** Prints the id on stdout, its state on stderr. */
export function printState(printer: Printer, sandbox: Sandbox): void {
  printer.result(sandbox, () => {
    printer.line(sandbox.sandbox_id);
    printer.note(`${stateText(sandbox)}, expires ${relativeTime(sandbox.expires_at, Date.now())}`);
  });
}
