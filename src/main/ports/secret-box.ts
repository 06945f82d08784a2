import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SecretBox } from '../../core/ports/secret-box.ts';
import type { Store } from '../../core/ports/store/store.ts';
import { loadMasterKey } from '../../secrets/master-key.ts';
import { SealedBox } from '../../secrets/sealed-box.ts';
import type { ResolvedConfig } from '../config/config.ts';

function wrongKey(strange: number, all: number): SandboxerError {
  return new SandboxerError(
    'SBX_MASTER_KEY',
    `The master key is another one than ${strange} of ${all} stored secrets are sealed under.`,
    { retryable: false },
  );
}

/**
 * Opens the box that seals stored secrets. A missing master key is made only while nothing is sealed, and a wrong one is refused
 * at the start: later, each use of a secret would fail by itself.
 */
export async function openSecretBox(
  { stateDir, master_key }: ResolvedConfig,
  env: NodeJS.ProcessEnv,
  store: Store,
): Promise<SecretBox> {
  const { file = join(stateDir, 'master.key'), command, previous_file: previous } = master_key;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const sealed = await store.read('sealed-secrets', async (tx) => [
    ...(await tx.providerKeys.list()).map((key) => key.sealed),
    ...(await tx.webhooks.list(null)).map(({ sealedSecret }) => sealedSecret),
  ]);
  const mayCreate = sealed.length === 0;
  const current = loadMasterKey({ file, command, value: env.SANDBOXER_MASTER_KEY, mayCreate });
  const { SANDBOXER_MASTER_KEY_PREVIOUS: value } = env;
  const earlier = value || previous ? [loadMasterKey({ file: previous ?? '', value, mayCreate: false })] : [];
  const box = new SealedBox(current, earlier);
  const strange = sealed.filter((text) => !box.knows(text)).length;
  if (strange > 0) throw wrongKey(strange, sealed.length);
  return box;
}
