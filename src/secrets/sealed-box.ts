import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { SandboxerError } from '../contract/errors/errors.ts';
import type { SecretBox } from '../core/ports/secret-box.ts';

/** Sealed by the key itself, as it was before there were envelopes. */
const DIRECT = 'v1';
/** Sealed by a key of its own, which is sealed by the master key: rotation touches no secret. */
const ENVELOPE = 'v2';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface WrappingKey {
  readonly id: string;
  readonly key: Buffer;
}

function wrappingKey(masterKey: Uint8Array): WrappingKey {
  const key = Buffer.from(hkdfSync('sha256', masterKey, '', 'sand-boxer sealed box v1', KEY_BYTES));
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

function encrypt(key: Buffer, plain: Buffer, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, sealed: Buffer, context: string): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw cannotOpen('it is cut short');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw cannotOpen('it was changed, or belongs to something else');
  }
}

/**
 * AES-256-GCM in an envelope. Text: version, id of the wrapping key, wrapped data key, ciphertext; each of the two with
 * its nonce before and its tag behind. Whatever an earlier master key sealed opens as long as that key is given, too.
 */
export class SealedBox implements SecretBox {
  readonly #current: WrappingKey;
  readonly #known: ReadonlyMap<string, Buffer>;

  constructor(masterKey: Uint8Array, earlier: readonly Uint8Array[] = []) {
    this.#current = wrappingKey(masterKey);
    const all = [this.#current, ...earlier.map(wrappingKey)];
    this.#known = new Map(all.map(({ id, key }) => [id, key]));
  }

  seal(plain: string, context: string): string {
    const dataKey = randomBytes(KEY_BYTES);
    return this.#wrapped(dataKey, encrypt(dataKey, Buffer.from(plain), context), context);
  }

  open(text: string, context: string): string {
    const [version, keyId = '', first = '', second = ''] = text.split('.');
    const body = Buffer.from(version === DIRECT ? first : second, 'base64url');
    if (version === DIRECT) return decrypt(this.#keyOf(keyId), body, context).toString('utf8');
    if (version !== ENVELOPE) throw cannotOpen('it has a form that is not known here');
    return decrypt(this.#dataKey(keyId, first, context), body, context).toString('utf8');
  }

  /** Whether one of its keys sealed this: nothing is opened. */
  knows(text: string): boolean {
    return this.#known.has(text.split('.')[1] ?? '');
  }

  reseal(text: string, context: string): string | null {
    const [version, keyId = '', first = '', second = ''] = text.split('.');
    if (version === ENVELOPE && keyId === this.#current.id) return null;
    if (version !== ENVELOPE) return this.seal(this.open(text, context), context);
    const body = Buffer.from(second, 'base64url');
    return this.#wrapped(this.#dataKey(keyId, first, context), body, context);
  }

  #wrapped(dataKey: Buffer, body: Buffer, context: string): string {
    const wrapped = encrypt(this.#current.key, dataKey, context);
    return [ENVELOPE, this.#current.id, wrapped.toString('base64url'), body.toString('base64url')].join('.');
  }

  #dataKey(keyId: string, wrapped: string, context: string): Buffer {
    return decrypt(this.#keyOf(keyId), Buffer.from(wrapped, 'base64url'), context);
  }

  #keyOf(id: string): Buffer {
    const key = this.#known.get(id);
    if (key) return key;
    throw cannotOpen('it was sealed under another master key');
  }
}

function cannotOpen(why: string): SandboxerError {
  return new SandboxerError('SBX_INTERNAL', `A stored secret cannot be opened: ${why}.`, {
    retryable: false,
    remedy: 'Restore the master key that sealed it, or replace the secret.',
  });
}
