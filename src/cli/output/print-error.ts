import { SandboxerApiError } from '../../client/api-error.ts';
import { SandboxerConnectionError } from '../../client/connection-error.ts';
import type { Problem } from '../../contract/errors.ts';
import { CommandFailure } from '../command-failure.ts';
import { UsageError } from '../usage-error.ts';
import { plainLines, plainText } from './plain-text.ts';
import type { Printer } from './printer.ts';

/** What the funnel prints, whatever was thrown. */
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
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The members that some problems have: candidates of a route, issues of a document, attempts. */
function notesOf(problem: Problem): string[] {
  const candidates = list(problem.candidates).map((item) => {
    const { extension, excluded_by } = item as Candidate;
    const reasons = list(excluded_by).map((reason) => (reason as { detail?: unknown }).detail);
    return `${extension}: ${reasons.join('; ') || 'a candidate'}`;
  });
  const issues = list(problem.issues).map((item) => {
    const { file, line, field, problem: what } = item as Issue;
    const place = [file, line].filter((part) => part !== undefined && part !== null).join(':');
    return `${place === '' ? '' : `${place}: `}${field}: ${what}`;
  });
  const single =
    issues.length === 1 &&
    candidates.length === 0 &&
    list(problem.issues).every((item) => !(item as Issue).file);
  return single ? candidates : [...candidates, ...issues];
}

/** The server's own error class, thrown in this process by `serve`. It is known by its shape: its module is not ours. */
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
      message: error.detail,
      code: error.code + request,
      remedy: error.remedy || null,
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
  return local(message, 'SBX_CLI_FAILED', null);
}

/** The one way in which an error reaches a person or a program. */
export function printError(error: unknown, printer: Printer): void {
  const { message, code, remedy, notes, problem } = reportOf(error);
  if (printer.json) {
    process.stdout.write(`${JSON.stringify({ error: problem })}\n`);
    return;
  }
  const { err } = printer;
  const branch = (text: string, last: boolean) => `${err.dim(last ? '╰▶' : '├▶')} ${text}\n`;
  let text = `${err.red('error:')} ${plainLines(message)}\n`;
  for (const note of notes) text += branch(plainText(note), false);
  text += branch(err.dim(code), remedy === null);
  if (remedy !== null) text += branch(plainText(remedy), true);
  process.stderr.write(text);
}
