import type { LookupAddress } from 'node:dns';
import { describe, expect, it } from 'vitest';
import { isPrivateAddress } from './private-address.ts';
import { checkTarget, guardedLookup } from './target-policy.ts';

const STRICT = { allowPrivate: false, allowHttp: false };

describe('addresses', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.31.255.255',
    '192.168.0.1',
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    'fe80::1',
    'fd00:ec2::254',
    'ff02::1',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
    '2001:db8::1',
    'not an address',
  ])('%s is private', (address) => expect(isPrivateAddress(address)).toBe(true));

  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '193.0.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    '%s is public',
    (address) => expect(isPrivateAddress(address)).toBe(false),
  );
});

describe('targets', () => {
  it.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost:8443/',
    'https://169.254.169.254/latest/meta-data',
    'https://１２７.0.0.1/',
    'https://10.0.0.1:22/',
    'http://example.com/',
    'http://8.8.8.8/',
    'https://user:pass@example.com/',
    'https://example.com/#x',
    'ftp://example.com/',
    'file:///etc/passwd',
    'nonsense',
  ])('%s is refused', (url) => {
    expect(() => checkTarget(url, STRICT)).toThrow('SBX_INVALID_REQUEST');
  });

  it('targets are public hosts by https, and more when the policy allows it', () => {
    expect(checkTarget('https://example.com:8443/hook?a=1', STRICT).port).toBe('8443');
    expect(checkTarget('http://127.0.0.1:1/', { allowPrivate: true, allowHttp: false }).port).toBe('1');
    expect(() => checkTarget('http://10.0.0.1/', { allowPrivate: true, allowHttp: false })).toThrow(
      'not encrypted',
    );
    expect(checkTarget('http://10.0.0.1/', { allowPrivate: true, allowHttp: true }).hostname).toBe(
      '10.0.0.1',
    );
  });
});

describe('look-ups', () => {
  type Outcome = { error: Error | null; address: unknown };
  const lookUp = (found: readonly string[], allowPrivate = false) => {
    let asked = 0;
    const resolve = ((
      _name: string,
      _options: object,
      done: (error: null, found: LookupAddress[]) => void,
    ) => {
      asked += 1;
      done(
        null,
        found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    }) as never;
    const lookup = guardedLookup({ allowPrivate, allowHttp: false }, resolve);
    return new Promise<Outcome & { asked: number }>((done) =>
      lookup('hook.example', { all: true }, (error, address) => done({ error, address, asked })),
    );
  };

  it('hand out what was checked, asked once', async () => {
    const { error, address, asked } = await lookUp(['8.8.8.8', '2606:4700::1']);
    expect(error).toBeNull();
    expect(address).toEqual([
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1', family: 6 },
    ]);
    expect(asked).toBe(1);
  });

  it('guarded look-ups refuse a name with any private address, and do not say which', async () => {
    const { error } = await lookUp(['8.8.8.8', '10.0.0.7']);
    expect(error?.message).toBe('The host does not resolve to a public address.');
    expect((await lookUp([])).error).not.toBeNull();
    expect((await lookUp(['10.0.0.7'], true)).error).toBeNull();
  });

  it('guardedLookup: an unknown name and a private one are refused in the same words', async () => {
    const missing = ((_name: string, _options: object, done: (error: Error) => void) =>
      done(Object.assign(new Error('getaddrinfo ENOTFOUND db.internal'), { code: 'ENOTFOUND' }))) as never;
    const refusal = (policy: { allowPrivate: boolean; allowHttp: boolean }) =>
      new Promise<Error | null>((done) =>
        guardedLookup(policy, missing)('db.internal', { all: true }, (error) => done(error)),
      );
    const { error } = await lookUp(['10.0.0.7']);
    expect((await refusal(STRICT))?.message).toBe(error?.message);
    expect((await refusal({ ...STRICT, allowPrivate: true }))?.message).toContain('ENOTFOUND');
  });
});
