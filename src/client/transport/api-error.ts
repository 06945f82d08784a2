import type { ErrorCode, Problem } from '../../contract/errors/errors.ts';
import type { Creation } from '../../contract/values/state.ts';

/** Error for an answer of the server that is a problem document. */
export class SandboxerApiError extends Error {
  override readonly name = 'SandboxerApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly detail: string;
  readonly remedy: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Whether the failed request left something behind; `undefined` where the question does not apply. */
  readonly creation: Creation | undefined;
  /** Request field at fault. */
  readonly field: string | undefined;
  readonly backend: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Whole document, with members that only some errors have: candidates, shortfall, issues. */
  readonly problem: Problem;

  constructor(problem: Problem, retryAfterSeconds?: number) {
    super(problem.detail);
    this.code = problem.code;
    this.status = problem.status;
    this.detail = problem.detail;
    this.remedy = problem.remedy;
    this.retryable = problem.retryable;
    this.creation = problem.creation;
    this.field = problem.field;
    this.backend = problem.backend;
    this.requestId = problem.request_id;
    this.retryAfterSeconds = retryAfterSeconds ?? problem.retry_after_seconds;
    this.problem = problem;
  }
}

const LONGEST_QUOTE = 200;

function isProblem(value: unknown): value is Problem {
  if (typeof value !== 'object' || value === null) return false;
  const { code, detail, status } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof detail === 'string' && typeof status === 'number';
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Parses `Retry-After` in seconds: a number or a date. */
function retryAfterSeconds(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, (at - nowMs) / 1000);
}

/** Makes a problem of an answer in another form, such as that of a proxy. */
export function apiErrorFrom(status: number, body: string, retryAfter?: string): SandboxerApiError {
  const seconds = retryAfterSeconds(retryAfter, Date.now());
  const parsed = parsedJson(body);
  if (isProblem(parsed)) return new SandboxerApiError(parsed, seconds);
  const quote = body.replace(/\s+/g, ' ').trim().slice(0, LONGEST_QUOTE);
  const problem: Problem = {
    type: 'about:blank',
    title: 'An answer that is not from sand-boxer',
    status,
    detail: `The answer was ${status} without a problem document${quote === '' ? '' : `: ${quote}`}`,
    code: 'SBX_INTERNAL',
    remedy: 'Check that the URL is that of a sand-boxer server, and what stands in front of it.',
    fault: 'server',
    retryable: status === 429 || (status >= 502 && status <= 504),
  };
  return new SandboxerApiError(problem, seconds);
}
