import { SandboxerApiError } from '../../client/transport/api-error.ts';
import { SandboxerConnectionError } from '../../client/transport/connection-error.ts';
import type { Problem } from '../../contract/errors/errors.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { UsageError } from '../failures/usage-error.ts';
import { moneyText } from './amounts.ts';
import { plainLines, plainText } from './plain-text.ts';
import type { Printer } from './printer.ts';
import { shortDuration } from './relative-time.ts';
import { wrapped } from './wrapped-text.ts';

/** Printed form of an error, whatever was thrown. */
export interface ErrorReport {
  readonly message: string;
  readonly code: string;
  readonly remedy: string | null;
  /** Further lines between the message and the remedy. */
  readonly notes: readonly string[];
  readonly problem: Record<string, unknown>;
}

interface Candidate {
  readonly extension?: unknown;
  readonly excluded_by?: readonly { readonly code?: unknown; readonly detail?: unknown }[];
}
interface Issue {
  readonly file?: unknown;
  readonly line?: unknown;
  readonly field?: unknown;
  readonly problem?: unknown;
  readonly remedy?: unknown;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the reason alone where candidates follow, which would repeat the rest; amounts are in dollars. */
function messageOf(problem: Problem): string {
  const { reason, candidates, shortfall_micro_usd: short, available_micro_usd: available } = problem;
  if (typeof reason === 'string' && list(candidates).length > 0) return reason;
  if (typeof short !== 'number' || typeof available !== 'number') return spokenOf(problem);
  const [needed, has] = [moneyText(short + available), moneyText(available)];
  return `${problem.title}: this needs ${needed}, ${has} is available, ${moneyText(short)} is missing.`;
}

/** Removes the place of a field in the request, which means nothing to the user of a command. */
function spokenOf({ code, detail }: Problem): string {
  if (code !== 'SBX_INVALID_REQUEST') return detail;
  return detail.replace(/^"[^"]*" in the path: /, '').replace(/^("[^"]*") in the (?:query|body):/, '$1:');
}

const REMEDY_OF_A_REQUEST = 'Correct the named field and send the request again.';

function remedyOf({ remedy }: SandboxerApiError): string | null {
  return remedy === REMEDY_OF_A_REQUEST ? 'Correct it and run the command again.' : remedy || null;
}

function affordable({ affordable_seconds: seconds }: Problem): string[] {
  if (typeof seconds !== 'number' || seconds < 1) return [];
  return [`What is available lasts for ${shortDuration(seconds)}.`];
}

/** Returns one line for each issue: its place, what is wrong, what to do. */
export function issueLines(issues: unknown): string[] {
  return list(issues).map((item) => {
    const { file, line, field, problem: what, remedy } = item as Issue;
    const place = [file, line].filter((part) => part !== undefined && part !== null).join(':');
    return [place && `${place}:`, field && `${field}:`, what, remedy].filter(Boolean).join(' ');
  });
}

/** Returns lines for members of some problems: remaining credits, candidates of a route, issues of a document. */
function notesOf(problem: Problem): string[] {
  const candidates = list(problem.candidates).map((item) => {
    const { extension, excluded_by } = item as Candidate;
    const reasons = list(excluded_by).map((reason) => (reason as { detail?: unknown }).detail);
    return `${extension}: ${reasons.join('; ') || 'a candidate'}`;
  });
  const issues = issueLines(problem.issues);
  const single =
    issues.length === 1 &&
    candidates.length === 0 &&
    list(problem.issues).every((item) => !(item as Issue).file);
  return [...affordable(problem), ...candidates, ...(single ? [] : issues)];
}

/** Server's own error class, thrown in this process by `serve`. It is recognised by its shape: its module is not ours. */
interface ServerSideError {
  readonly code: string;
  readonly detail: string;
  readonly remedy: string;
}

function isServerSide(error: unknown): error is ServerSideError {
  const { code, detail, remedy } = (error ?? {}) as Partial<ServerSideError>;
  return typeof code === 'string' && typeof detail === 'string' && typeof remedy === 'string';
}

function local(message: string, code: string, remedy: string | null): ErrorReport {
  const problem = {
    type: `urn:sand-boxer:error:${code}`,
    title: message,
    detail: message,
    code,
    remedy,
    retryable: false,
  };
  return { message, code, remedy, notes: [], problem };
}

export function reportOf(error: unknown): ErrorReport {
  if (error instanceof SandboxerApiError) {
    const where = error.backend === undefined ? '' : `, ${error.backend}`;
    const request = error.requestId === undefined ? '' : ` (request ${error.requestId}${where})`;
    return {
      message: messageOf(error.problem),
      code: error.code + request,
      remedy: remedyOf(error),
      notes: notesOf(error.problem),
      problem: error.problem,
    };
  }
  if (error instanceof SandboxerConnectionError) {
    return local(error.message, `SBX_CLI_${error.failure.toUpperCase()}`, error.remedy);
  }
  if (error instanceof CommandFailure) return local(error.message, error.code, error.remedy);
  if (error instanceof UsageError) return local(error.message, 'SBX_CLI_USAGE', error.remedy ?? null);
  if (isServerSide(error)) return local(error.detail, error.code, error.remedy);
  const message = error instanceof Error ? error.message : String(error);
  return local(message, 'SBX_CLI_FAILED', 'If it happens again, report it with what sandboxer doctor says.');
}

/** Prints an error for a person or a program; all errors pass here. */
export function printError(error: unknown, printer: Printer): void {
  const { message, code, remedy, notes, problem } = reportOf(error);
  if (printer.json) {
    process.stdout.write(`${JSON.stringify({ error: problem })}\n`);
    return;
  }
  const { err } = printer;
  const { isTTY, columns } = process.stderr;
  const width = isTTY && columns ? columns : undefined;
  const branch = (text: string, last: boolean, paint = (line: string) => line) =>
    wrapped(text, width, 3)
      .map((line, at) => `${err.dim(at > 0 ? (last ? '  ' : '│ ') : last ? '╰▶' : '├▶')} ${paint(line)}\n`)
      .join('');
  const [first = '', ...more] = plainLines(message)
    .split('\n')
    .flatMap((line, at) => wrapped(line, width, at === 0 ? 7 : 0));
  let text = [`${err.red('error:')} ${first}`, ...more].map((line) => `${line}\n`).join('');
  for (const note of notes) text += branch(plainText(note), false);
  text += branch(code, remedy === null, err.dim);
  if (remedy !== null) text += branch(plainText(remedy), true);
  process.stderr.write(text);
}
