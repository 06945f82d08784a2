import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** The caller's own key; `null` for the local administrator. */
export async function whoAmI(deps: ControlPorts, { keyId }: Caller): Promise<KeyRecord | null> {
  return keyId === null ? null : deps.store.read('whoami', (tx) => tx.tenancy.key(keyId));
}
