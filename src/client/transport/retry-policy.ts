import { SandboxerApiError } from './api-error.ts';
import { SandboxerConnectionError } from './connection-error.ts';

export interface Repeatability {
  /** Sending the request twice equals sending it once: a read, a keyed create, a removal. */
  readonly idempotent: boolean;
  /** The request carries an Idempotency-Key: a repetition has the same result. */
  readonly keyed: boolean;
  /** The body can be sent again. */
  readonly replayable: boolean;
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
const LONGEST_RETRY_AFTER_MS = 30_000;

/** Statuses of answers that say nothing was done, so that even a request which is not idempotent may be repeated. */
const NOTHING_DONE = new Set([409, 429, 503]);
/** Errors after a full attempt of the server: the same request would only repeat the wait. */
const NOT_WORTH_IT = new Set(['SBX_PROVISION_FAILED', 'SBX_TIMEOUT', 'SBX_INVALID_STATE']);

function backoffMs(tries: number, random: number): number {
  const base = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** tries);
  return base * (0.5 + random / 2);
}

function answerDelayMs(error: SandboxerApiError, request: Repeatability, tries: number, random: number) {
  if (!error.retryable || error.status === 402 || NOT_WORTH_IT.has(error.code)) return null;
  const onlyWhenUndone = request.keyed || !request.idempotent;
  if (onlyWhenUndone && !NOTHING_DONE.has(error.status)) return null;
  if (error.retryAfterSeconds === undefined) return backoffMs(tries, random);
  const asked = error.retryAfterSeconds * 1000;
  return asked > LONGEST_RETRY_AFTER_MS ? null : asked;
}

interface Tries {
  readonly tries: number;
  readonly maxRetries: number;
  readonly random?: number;
}

/** Returns the wait before the next try, or `null` when there is none. `tries` counts the tries already made. */
export function retryDelayMs(
  error: unknown,
  request: Repeatability,
  { tries, maxRetries, random = Math.random() }: Tries,
): number | null {
  if (tries > maxRetries) return null;
  const unreached = error instanceof SandboxerConnectionError && error.failure === 'unreachable';
  // No server was reached, so that nothing of the body was read.
  if (unreached) return backoffMs(tries - 1, random);
  if (!request.replayable) return null;
  if (error instanceof SandboxerApiError) return answerDelayMs(error, request, tries - 1, random);
  if (!(error instanceof SandboxerConnectionError)) return null;
  return error.failure === 'lost' && request.idempotent ? backoffMs(tries - 1, random) : null;
}
