import { SandboxerError } from '../contract/errors/errors.ts';
import type { SecretProvider } from '../core/ports/secrets.ts';

const PREFIX = 'SANDBOXER_SECRET_';

/**
 * Secrets from variables `SANDBOXER_SECRET_<KEY>`: the prefix keeps every other variable of the server out of reach.
 * Those of a named workspace are `SANDBOXER_SECRET_<WORKSPACE>__<KEY>`; no key holds `__`, so that none reaches over.
 */
export class EnvSecretProvider implements SecretProvider {
  readonly #environment: Readonly<Record<string, string | undefined>>;

  readonly #prefix: string;

  constructor(environment: Readonly<Record<string, string | undefined>>, workspaceId: string | null = null) {
    this.#environment = environment;
    this.#prefix =
      workspaceId === null ? PREFIX : `${PREFIX}${workspaceId.toUpperCase().replaceAll('-', '_')}__`;
  }

  async resolve(key: string): Promise<string> {
    if (!/^[A-Z0-9_]{1,200}$/.test(key) || key.includes('__')) {
      throw unresolved(
        'The key is not made of "A"–"Z", "0"–"9" and single "_".',
        'Correct the key of the reference.',
      );
    }
    const value = this.#environment[this.#prefix + key];
    if (value) return value;
    throw unresolved(
      `The server has no ${this.#prefix}${key}.`,
      `Start the server with ${this.#prefix}${key} set.`,
    );
  }
}

function unresolved(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_SECRET_UNRESOLVED', detail, { remedy });
}
