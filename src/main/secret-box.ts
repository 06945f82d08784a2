import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SecretBox } from '../core/secret-box.ts';
import type { Store } from '../core/store.ts';
import { loadMasterKey } from '../secrets/master-key.ts';
import { SealedBox } from '../secrets/sealed-box.ts';
import type { ResolvedConfig } from './config.ts';

/** What stored secrets are sealed in. A master key that is missing is made only while nothing is sealed. */
export async function openSecretBox(
  { stateDir, master_key }: ResolvedConfig,
  env: NodeJS.ProcessEnv,
  store: Store,
): Promise<SecretBox> {
  const { file = join(stateDir, 'master.key'), command, previous_file: previous } = master_key;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const mayCreate = await store.read('sealed-secrets', async (tx) => {
    if ((await tx.providerKeys.list()).length > 0) return false;
    return (await tx.webhooks.list(null)).length === 0;
  });
  const current = loadMasterKey({ file, command, value: env.SANDBOXER_MASTER_KEY, mayCreate });
  const { SANDBOXER_MASTER_KEY_PREVIOUS: value } = env;
  const earlier = value || previous ? [loadMasterKey({ file: previous ?? '', value, mayCreate: false })] : [];
  return new SealedBox(current, earlier);
}
