import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import type { Control } from '../control.ts';

/** The caller's own key; `null` for the local administrator. */
export async function whoAmI(control: Control, { keyId }: Caller): Promise<KeyRecord | null> {
  return keyId === null ? null : control.store.read('whoami', (tx) => tx.tenancy.key(keyId));
}
