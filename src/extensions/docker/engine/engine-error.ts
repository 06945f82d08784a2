import type { ErrorCode, ErrorExtras } from '../../../contract/errors/errors.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';

export const BACKEND = 'ext.docker';
const LONGEST_TEXT = 500;

/** Error answer of the engine, with its message cut to a printable length. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly status: number;

  constructor(status: number, text: string) {
    super(printable(text));
    this.status = status;
  }
}

/** Failure to reach the engine, or an answer that cannot be read. */
export class EngineUnreachable extends Error {
  override readonly name = 'EngineUnreachable';
  readonly reason: 'closed' | 'refused' | 'timeout' | 'garbled' | 'aborted';
  readonly code: string | null;

  constructor(reason: EngineUnreachable['reason'], text: string, code: string | null = null) {
    super(printable(text));
    this.reason = reason;
    this.code = code;
  }
}

/** The container ended before its agent had answered for the first time. */
export class AgentEnded extends Error {
  override readonly name = 'AgentEnded';
  readonly exitCode: number;

  constructor(exitCode: number, why: string) {
    super(printable(`Its container ended with ${exitCode}${why === '' ? '' : `: ${why}`}.`));
    this.exitCode = exitCode;
  }
}

function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, LONGEST_TEXT);
}

export function isMissing(error: unknown): boolean {
  return error instanceof EngineError && error.status === 404;
}

/** Podman has no error code of its own for a name that is taken. */
export function isConflict(error: unknown): boolean {
  return (
    error instanceof EngineError && (error.status === 409 || /name .* is already in use/.test(error.message))
  );
}

const OUT_OF_ROOM = /no space left|disk quota exceeded|not enough (?:memory|space)|cannot allocate memory/i;

function codeOf(error: unknown): ErrorCode {
  if (error instanceof EngineUnreachable) {
    if (error.reason === 'aborted') return 'SBX_CANCELLED';
    return error.reason === 'timeout' ? 'SBX_TIMEOUT' : 'SBX_EXTENSION_FAILED';
  }
  if (error instanceof AgentEnded) return 'SBX_BACKEND_LOST';
  if (!(error instanceof EngineError)) return 'SBX_EXTENSION_FAILED';
  if (error.status === 401 || error.status === 403) return 'SBX_BACKEND_AUTH';
  if (error.status === 404) return 'SBX_BACKEND_LOST';
  return OUT_OF_ROOM.test(error.message) ? 'SBX_BACKEND_QUOTA' : 'SBX_EXTENSION_FAILED';
}

/** Maps any failure to an error of the catalogue. */
export function failed(error: unknown, extras: ErrorExtras = {}): SandboxerError {
  if (error instanceof SandboxerError) return error;
  const said = error instanceof Error ? error.message : 'It failed.';
  const detail = error instanceof EngineError ? `The engine says: ${said}` : said;
  return new SandboxerError(codeOf(error), detail, { backend: BACKEND, ...extras });
}

export function lost(detail: string): SandboxerError {
  return new SandboxerError('SBX_BACKEND_LOST', detail, { backend: BACKEND });
}
