import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { SandboxerError } from '../contract/errors.ts';
import type { SecretBox } from '../core/secret-box.ts';

const VERSION = 'v1';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM under a key derived from the master key. Text: version, id of the key, nonce + ciphertext + tag. */
export class SealedBox implements SecretBox {
  readonly keyId: string;
  readonly #key: Buffer;

  constructor(masterKey: Uint8Array) {
    this.#key = Buffer.from(hkdfSync('sha256', masterKey, '', 'sand-boxer sealed box v1', 32));
    this.keyId = createHash('sha256').update(this.#key).digest('hex').slice(0, 8);
  }

  seal(plain: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}.${this.keyId}.${sealed.toString('base64url')}`;
  }

  open(text: string, context: string): string {
    const [version, keyId, body = ''] = text.split('.');
    if (version !== VERSION || keyId !== this.keyId)
      throw cannotOpen('it was sealed under another master key');
    const sealed = Buffer.from(body, 'base64url');
    if (sealed.length < NONCE_BYTES + TAG_BYTES) throw cannotOpen('it is cut short');
    const nonce = sealed.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([plain, decipher.final()]).toString('utf8');
    } catch {
      throw cannotOpen('it was changed, or belongs to something else');
    }
  }
}

function cannotOpen(why: string): SandboxerError {
  return new SandboxerError('SBX_INTERNAL', `A stored secret cannot be opened: ${why}.`, {
    retryable: false,
    remedy: 'Restore the master key that sealed it, or replace the secret.',
  });
}
