import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PreviewGrant } from './preview-access.ts';
import { PreviewAccess } from './preview-access.ts';

const access = new PreviewAccess(Buffer.alloc(32, 7));
const grant: PreviewGrant = {
  sandbox: '0123456789abcdefghjk',
  port: 65_535,
  expiresAt: 1_900_000_000,
  keyNumber: 1_000_000,
};

describe('preview addresses', () => {
  it('fit in a host label and name their sandbox and port', () => {
    for (const label of [access.privateLabel(grant), access.publicLabel(grant)]) {
      expect(label.length).toBeLessThanOrEqual(63);
      expect(label).toMatch(/^[a-z0-9-]+$/);
      expect(access.readLabel(label)?.grant).toMatchObject({ sandbox: grant.sandbox, port: grant.port });
    }
  });

  it('preview addresses are public only with our signature', () => {
    expect(access.readLabel(access.publicLabel(grant))).toEqual({ grant, public: true });
    expect(access.readLabel(access.privateLabel(grant))?.public).toBe(false);
    expect(new PreviewAccess(Buffer.alloc(32, 8)).readLabel(access.publicLabel(grant))).toBeNull();
  });

  it('preview addresses accept a token for exactly what it was made for', () => {
    const token = access.token(grant);
    expect(access.readToken(token, grant)).toEqual(grant);
    expect(access.readToken(token, { ...grant, port: 3001 })).toBeNull();
    expect(access.readToken(token, { ...grant, sandbox: 'zzzzzzzzzzzzzzzzzzzz' })).toBeNull();
    const [expiresAt, keyNumber, signature] = token.split('.');
    const later = `${(grant.expiresAt + 1).toString(36)}.${keyNumber}.${signature}`;
    expect(access.readToken(later, grant)).toBeNull();
    expect(access.readToken(`${expiresAt}.0.${signature}`, grant)).toBeNull();
  });

  it('preview addresses take no nonsense', () => {
    fc.assert(fc.property(fc.string({ maxLength: 80 }), (text) => access.readToken(text, grant) === null));
    fc.assert(fc.property(fc.string({ maxLength: 80 }), (text) => access.readLabel(text)?.public !== true));
  });
});
