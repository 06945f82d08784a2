import assert from 'node:assert/strict';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Creation } from '../../contract/values/state.ts';

/** Requires the work to fail with one of these codes, and with that `creation` when given. */
export async function expectError(
  work: Promise<unknown>,
  codes: readonly ErrorCode[],
  creation?: Creation,
): Promise<SandboxerError> {
  const outcome = await work.then(
    () => null,
    (error: unknown) => ({ error }),
  );
  assert.ok(outcome !== null, `It succeeded instead of failing with ${codes.join(' or ')}.`);
  const { error } = outcome;
  assert.ok(
    error instanceof SandboxerError,
    `It failed with something else than a SandboxerError: ${String(error)}`,
  );
  const wanted = codes.length === 0 || codes.includes(error.code);
  assert.ok(wanted, `It failed with ${error.message} instead of ${codes.join(' or ')}.`);
  if (creation !== undefined) assert.equal(error.extras.creation, creation, 'The error’s `creation`.');
  return error;
}
