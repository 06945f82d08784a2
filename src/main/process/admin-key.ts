import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeyScope } from '../../contract/tenancy/tenancy.ts';
import type { Control } from '../../control/control.ts';
import { createKey } from '../../control/tenancy/manage-keys.ts';
import { localCaller } from '../../http/keys/caller-for.ts';
import { DEFAULT_ORG, DEFAULT_WORKSPACE } from './installation.ts';

/** Makes the first key of a server on TCP, in a file that only its owner can read. */
export async function firstAdminKey(control: Control, stateDir: string): Promise<string | null> {
  const keys = await control.store.read('keys', (tx) => tx.tenancy.keys(null));
  if (keys.length > 0) return null;
  const caller = localCaller(DEFAULT_WORKSPACE, DEFAULT_ORG);
  const { secret } = await createKey(control, caller, {
    name: 'first administrator',
    actor: 'adm',
    scopes: KeyScope.options,
  });
  const file = join(stateDir, 'admin.key');
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  return file;
}
