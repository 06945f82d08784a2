import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * A port of a sandbox, with the terms of access. Only what a token or a public label proves is a grant; for a private label
 * `readLabel` fills `expiresAt` and `keyNumber` with 0: it names the port and allows nothing.
 */
export interface PreviewGrant {
  /** The part of the sandbox's uid behind `sbx_`. */
  readonly sandbox: string;
  readonly port: number;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  /** The number of the key it was made with, which it ends with; 0 for the local administrator. */
  readonly keyNumber: number;
}

/** 120 bits: with everything else it fits the 63 characters of a host label. */
const SIGNATURE_LENGTH = 24;
const PRIVATE_LABEL = /^(\d{1,5})-([a-z0-9]{10,40})$/;
const PUBLIC_LABEL = /^(\d{1,5})-([a-z0-9]{10,40})-([a-z0-9]{1,8})-([a-z0-9]{1,8})-([a-z2-7]{24})$/;
const TOKEN = /^([a-z0-9]{1,8})\.([a-z0-9]{1,8})\.([a-z2-7]{24})$/;

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** Encodes as base32: host names do not distinguish upper from lower case. */
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

  /** Returns the host label of a port that is public: the address alone gives access, until it expires. */
  publicLabel(grant: PreviewGrant): string {
    const { sandbox, port, expiresAt, keyNumber } = grant;
    const terms = `${expiresAt.toString(36)}-${keyNumber.toString(36)}`;
    return `${port}-${sandbox}-${terms}-${this.#sign('public', grant)}`;
  }

  token(grant: PreviewGrant): string {
    const { expiresAt, keyNumber } = grant;
    return `${expiresAt.toString(36)}.${keyNumber.toString(36)}.${this.#sign('private', grant)}`;
  }

  /** Reads a host label: the port that it names, and whether the label alone gives access. `null` when the label is not ours. */
  readLabel(label: string): { grant: PreviewGrant; public: boolean } | null {
    const open = PUBLIC_LABEL.exec(label);
    if (open) {
      const named = { port: Number(open[1]), sandbox: open[2] as string };
      const grant = { ...named, ...readTerms(open[3], open[4]) };
      return this.#matches('public', grant, open[5] as string) ? { grant, public: true } : null;
    }
    const closed = PRIVATE_LABEL.exec(label);
    if (!closed) return null;
    const grant = { port: Number(closed[1]), sandbox: closed[2] as string, expiresAt: 0, keyNumber: 0 };
    return { grant, public: false };
  }

  /** The grant with the token's own terms, or `null` when the token is not for this sandbox and port. */
  readToken(token: string, named: PreviewGrant): PreviewGrant | null {
    const match = TOKEN.exec(token);
    if (!match) return null;
    const grant = { ...named, ...readTerms(match[1], match[2]) };
    return this.#matches('private', grant, match[3] as string) ? grant : null;
  }

  #sign(purpose: 'public' | 'private', { sandbox, port, expiresAt, keyNumber }: PreviewGrant): string {
    const text = `${purpose}\n${sandbox}\n${port}\n${expiresAt}\n${keyNumber}`;
    return base32(createHmac('sha256', this.#key).update(text).digest());
  }

  #matches(purpose: 'public' | 'private', grant: PreviewGrant, signature: string): boolean {
    return timingSafeEqual(Buffer.from(this.#sign(purpose, grant)), Buffer.from(signature));
  }
}

function readTerms(expiresAt = '', keyNumber = ''): Pick<PreviewGrant, 'expiresAt' | 'keyNumber'> {
  return { expiresAt: Number.parseInt(expiresAt, 36), keyNumber: Number.parseInt(keyNumber, 36) };
}
