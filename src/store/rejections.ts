import { SandboxerError } from '../contract/errors/errors.ts';

/** Compare-and-set lost, a unique key exists, or the row to change does not: the caller reads again and decides anew. */
export function conflict(detail: string): SandboxerError {
  return new SandboxerError('SBX_CONFLICT', detail);
}

export function idTaken(id: string): SandboxerError {
  return new SandboxerError('SBX_ID_TAKEN', `There is a sandbox "${id}" in this workspace.`);
}

/** A defect of the caller: written outside a transaction, or in a `read`. */
export function notWritable(): SandboxerError {
  return new SandboxerError('SBX_INTERNAL', 'Something wrote to the store outside a transaction.', {
    retryable: false,
  });
}

export function storeClosed(): SandboxerError {
  return new SandboxerError('SBX_UNAVAILABLE', 'The store is closed.');
}
