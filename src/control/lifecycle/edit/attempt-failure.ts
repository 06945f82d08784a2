import type { ErrorCode } from '../../../contract/errors/errors.ts';
import { ERRORS, failsEverywhere } from '../../../contract/errors/errors.ts';
import { Creation } from '../../../contract/values/state.ts';
import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { SandboxFailureRecord } from '../../../core/lifecycle/sandbox.ts';
import { wrongParts } from './backend-error.ts';
import type { SandboxEdit } from './sandbox-edit.ts';
import { AUTOMATION } from './sandbox-edit.ts';

/** Returns the most that one of the attempts may have made. */
function creationOf(attempts: readonly AttemptRecord[]): Creation {
  const made = attempts.map(({ creation }) => Creation.options.indexOf(creation ?? 'not_created'));
  return Creation.options[Math.max(0, ...made)] as Creation;
}

/** Returns the error of the last attempt when the request fails with it on every backend, else `null`. */
export function errorOfRequest(attempts: readonly AttemptRecord[]): AttemptRecord['error'] {
  const error = attempts.at(-1)?.error ?? null;
  return error !== null && failsEverywhere(error.code) ? error : null;
}

/** Returns why a sandbox failed: the error of its one attempt, or of the request; several errors are summed up. */
function failureOf(attempts: readonly AttemptRecord[], at: number): SandboxFailureRecord {
  const failed = attempts.filter((attempt) => attempt.error !== null);
  const [only] = failed;
  const single = errorOfRequest(attempts) ?? (failed.length === 1 && only?.error ? only.error : null);
  const code = (single?.code ?? 'SBX_PROVISION_FAILED') as ErrorCode;
  const detail =
    single?.detail ??
    (failed.map((attempt) => `${attempt.extensionId}: ${attempt.error?.detail}`).join('; ') ||
      'No backend could be tried.');
  const remedy = single?.remedy ?? ERRORS[code]?.remedy ?? ERRORS.SBX_PROVISION_FAILED.remedy;
  const backend = failed.find(({ error }) => error === single)?.extensionId;
  const creation = creationOf(attempts);
  return { code, detail, remedy, at, creation, ...(backend && { backend }), ...wrongParts(single ?? {}) };
}

/** Moves the sandbox to `failed` for what its attempts met; the event carries the same details. */
export function failSandbox(edit: SandboxEdit, attempts: readonly AttemptRecord[]): void {
  const failure = failureOf(attempts, edit.now);
  edit.patch({ failure });
  edit.move('failed', AUTOMATION, {
    code: failure.code,
    detail: failure.detail,
    ...wrongParts(failure),
  });
}
