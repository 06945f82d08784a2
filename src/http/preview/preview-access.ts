import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a preview address gives access to. */
export interface PreviewGrant {
  /** The part of the sandbox's uid behind `sbx_`. */
  readonly sandbox: string;
  readonly port: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

const SIGNATURE_LENGTH = 26;
const PRIVATE_LABEL = /^(\d{1,5})-([a-z0-9]{10,40})$/;
const PUBLIC_LABEL = /^(\d{1,5})-([a-z0-9]{10,40})-([a-z0-9]{1,8})-([a-z2-7]{26})$/;
const TOKEN = /^([a-z0-9]{1,8})\.([a-z2-7]{26})$/;

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** Host names do not tell upper from lower case, so a signature in one is base32. 130 bits of the digest. */
function base32(bytes: Buffer): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      text += BASE32[(value >>> (bits - 5)) & 31];
      bits -= 5;
    }
    value &= (1 << bits) - 1;
  }
  return text.slice(0, SIGNATURE_LENGTH);
}

/**
 * Signs and checks addresses of ports inside sandboxes. Nothing is stored: what a grant allows is in it. Each sandbox
 * and port has a host name, and so an origin, of its own.
 */
export class PreviewAccess {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The host label of a port that needs a token. */
  privateLabel(grant: PreviewGrant): string {
    return `${grant.port}-${grant.sandbox}`;
  }

  /** The host label of a port that anybody who knows the address may use, until it expires. */
  publicLabel(grant: PreviewGrant): string {
    return `${grant.port}-${grant.sandbox}-${grant.expiresAt.toString(36)}-${this.#sign('public', grant)}`;
  }

  token(grant: PreviewGrant): string {
    return `${grant.expiresAt.toString(36)}.${this.#sign('private', grant)}`;
  }

  /** Which port a host label names, and whether the label alone is enough. `null` when it is none of ours. */
  readLabel(label: string): { grant: PreviewGrant; public: boolean } | null {
    const open = PUBLIC_LABEL.exec(label);
    if (open) {
      const grant = {
        port: Number(open[1]),
        sandbox: open[2] as string,
        expiresAt: Number.parseInt(open[3] as string, 36),
      };
      return this.#matches('public', grant, open[4] as string) ? { grant, public: true } : null;
    }
    const closed = PRIVATE_LABEL.exec(label);
    return closed
      ? { grant: { port: Number(closed[1]), sandbox: closed[2] as string, expiresAt: 0 }, public: false }
      : null;
  }

  /** The grant with the token's own expiry, or `null` when the token is not for this sandbox and port. */
  readToken(token: string, named: PreviewGrant): PreviewGrant | null {
    const match = TOKEN.exec(token);
    if (!match) return null;
    const grant = { ...named, expiresAt: Number.parseInt(match[1] as string, 36) };
    return this.#matches('private', grant, match[2] as string) ? grant : null;
  }

  #sign(purpose: 'public' | 'private', { sandbox, port, expiresAt }: PreviewGrant): string {
    return base32(
      createHmac('sha256', this.#key).update(`${purpose}\n${sandbox}\n${port}\n${expiresAt}`).digest(),
    );
  }

  #matches(purpose: 'public' | 'private', grant: PreviewGrant, signature: string): boolean {
    return timingSafeEqual(Buffer.from(this.#sign(purpose, grant)), Buffer.from(signature));
  }
}
