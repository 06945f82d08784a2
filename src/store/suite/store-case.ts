import assert from 'node:assert/strict';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Store, Tx } from '../../core/ports/store/store.ts';

export interface StoreCase {
  readonly name: string;
  run(store: Store): Promise<void>;
}

export function write<T>(store: Store, work: (tx: Tx) => Promise<T>): Promise<T> {
  return store.transaction('test', work);
}

export function read<T>(store: Store, work: (tx: Tx) => Promise<T>): Promise<T> {
  return store.read('test', work);
}

export async function rejectsWith(code: ErrorCode, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof SandboxerError, `not a SandboxerError: ${error}`);
    assert.equal(error.code, code);
    return true;
  });
}

export function uidsOf(rows: readonly { readonly uid: string }[]): string[] {
  return rows.map(({ uid }) => uid);
}
