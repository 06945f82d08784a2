import type { ErrorExtras } from '../../../contract/errors/errors.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Creation } from '../../../contract/values/state.ts';
import type { AttemptError } from '../../../core/lifecycle/attempt.ts';
import { Interrupted, Outrun } from './interruption.ts';

export interface BackendFailure {
  readonly code: string;
  readonly detail: string;
  readonly creation: Creation;
  readonly error: SandboxerError;
}

type WrongParts = Pick<AttemptError, 'field' | 'issues'>;

/** Returns which fields an error names, of an error or of its record. */
export function wrongParts({ field, issues }: Pick<ErrorExtras, 'field' | 'issues'>): WrongParts {
  return { ...(field !== undefined && { field }), ...(issues !== undefined && { issues: [...issues] }) };
}

/** Returns a failure as the attempt that it ended keeps it. */
export function recordedError({ code, detail, error }: BackendFailure): AttemptError {
  return { code, detail, remedy: error.remedy, ...wrongParts(error.extras) };
}

/** Turns whatever an extension threw into one of our errors. Without a statement on creation, something may have been created. */
export function backendFailure(thrown: unknown, backend: string): BackendFailure {
  if (thrown instanceof SandboxerError) {
    const creation = thrown.extras.creation ?? 'maybe_created';
    const error =
      thrown.extras.backend === undefined
        ? new SandboxerError(thrown.code, thrown.detail, { ...thrown.extras, backend })
        : thrown;
    return { code: thrown.code, detail: thrown.detail, creation, error };
  }
  if (thrown instanceof Interrupted || thrown instanceof Outrun) {
    const detail = 'The attempt was stopped: the sandbox is no longer wanted on it.';
    const error = new SandboxerError('SBX_CANCELLED', detail, { cause: thrown, backend });
    return { code: 'SBX_CANCELLED', detail, creation: 'maybe_created', error };
  }
  const detail =
    thrown instanceof Error
      ? `${thrown.name}: ${thrown.message}`
      : 'It threw something that is not an error.';
  const bounded = detail.slice(0, 500);
  return {
    code: 'SBX_EXTENSION_FAILED',
    detail: bounded,
    creation: 'maybe_created',
    error: new SandboxerError('SBX_EXTENSION_FAILED', bounded, {
      cause: thrown,
      backend,
      creation: 'maybe_created',
    }),
  };
}
