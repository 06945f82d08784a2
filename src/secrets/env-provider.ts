import { SandboxerError } from '../contract/errors.ts';
import type { SecretProvider } from '../core/secrets.ts';

const PREFIX = 'SANDBOXER_SECRET_';

/** Secrets from variables `SANDBOXER_SECRET_<KEY>`: the prefix keeps every other variable of the server out of reach. */
export class EnvSecretProvider implements SecretProvider {
  readonly #environment: Readonly<Record<string, string | undefined>>;

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.#environment = environment;
  }

  async resolve(key: string): Promise<string> {
    if (!/^[A-Z0-9_]{1,200}$/.test(key)) {
      throw unresolved(
        'The key is not made of "A"–"Z", "0"–"9" and "_".',
        'Correct the key of the reference.',
      );
    }
    const value = this.#environment[PREFIX + key];
    if (value) return value;
    throw unresolved(`The server has no ${PREFIX}${key}.`, `Start the server with ${PREFIX}${key} set.`);
  }
}

function unresolved(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_SECRET_UNRESOLVED', detail, { remedy });
}
