import type { IncomingMessage } from 'node:http';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAddress, holderOf, isNetwork, trustedProxies } from './client-address.ts';
import { WrongKeys } from './wrong-keys.ts';

const NOBODY = trustedProxies([]);
const from = (remoteAddress: string | undefined, forwarded?: string) =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

describe('clientAddress', () => {
  it('clientAddress: what a stranger says in X-Forwarded-For is ignored', () => {
    expect(clientAddress(from('9.9.9.9', '1.1.1.1'), NOBODY)).toBe('9.9.9.9');
    expect(clientAddress(from('::ffff:9.9.9.9', '1.1.1.1'), trustedProxies(['10.0.0.0/8']))).toBe('9.9.9.9');
  });

  it('clientAddress: behind trusted proxies, the nearest address that is none of them', () => {
    const proxies = trustedProxies(['10.0.0.0/8', 'fd00::/8', '127.0.0.1']);
    expect(clientAddress(from('127.0.0.1', '6.6.6.6, 8.8.8.8, 10.1.2.3'), proxies)).toBe('8.8.8.8');
    expect(clientAddress(from('fd00::1', '2001:db8::5'), proxies)).toBe('2001:db8::5');
    expect(clientAddress(from('10.0.0.1', 'nonsense'), proxies)).toBe('10.0.0.1');
    expect(clientAddress(from('10.0.0.1', '6.6.6.6, , 10.0.0.2'), proxies)).toBe('10.0.0.2');
    expect(clientAddress(from('10.0.0.1'), proxies)).toBe('10.0.0.1');
    expect(clientAddress(from(undefined, '6.6.6.6'), proxies)).toBeNull();
  });

  it('isNetwork: takes addresses and networks alone', () => {
    for (const text of ['10.0.0.7', '10.0.0.0/8', 'fd00::/8', '::1']) expect(isNetwork(text)).toBe(true);
    for (const text of ['', 'proxy', '10.0.0.0/33', '::/129', '10.0.0/8', '10.0.0.1/-1'])
      expect(isNetwork(text)).toBe(false);
  });
});

describe('holderOf', () => {
  it('holderOf: an address of IPv4 stands for itself, one of IPv6 for its /64', () => {
    expect(holderOf('9.9.9.9')).toBe('9.9.9.9');
    expect(holderOf('2001:db8:0:7::1')).toBe('2001:db8:0:7::/64');
    expect(holderOf('2001:db8:0:7:ffff:ffff:ffff:ffff')).toBe('2001:db8:0:7::/64');
    expect(holderOf('2001:db8:0:8::1')).not.toBe(holderOf('2001:db8:0:7::1'));
    expect(holderOf('fe80::1')).toBe('fe80:0:0:0::/64');
    expect(holderOf('::1')).toBe('0:0:0:0::/64');
  });

  it('holderOf: however an address of IPv6 is written, the first half of its bits decides', () => {
    const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
    const groups = fc.array(group, { minLength: 8, maxLength: 8 });
    void fc.assert(
      fc.property(groups, fc.array(group, { minLength: 4, maxLength: 4 }), (address, host) => {
        const text = (parts: readonly number[], digits: number) =>
          parts.map((part) => part.toString(16).padStart(digits, '0')).join(':');
        const sibling = [...address.slice(0, 4), ...host];
        expect(holderOf(text(address, 1))).toBe(holderOf(text(sibling, 4)));
      }),
    );
  });
});

describe('WrongKeys', () => {
  const setUp = () => {
    let now = 1_000_000;
    const keys = new WrongKeys({ now: () => now }, NOBODY, { perSecond: 1, burst: 3 });
    const codes = (address: string | undefined, count: number) =>
      Array.from({ length: count }, () => keys.refusal(from(address)).code);
    return { keys, codes, pass: (ms: number) => (now += ms) };
  };
  const [WRONG, LIMITED] = ['SBX_UNAUTHENTICATED', 'SBX_RATE_LIMITED'];

  it('WrongKeys: too many wrong keys from one address are limited, and other addresses are not', () => {
    const { keys, codes, pass } = setUp();
    expect(codes('9.9.9.9', 5)).toEqual([WRONG, WRONG, WRONG, LIMITED, LIMITED]);
    expect(keys.refusal(from('9.9.9.9')).extras.retryAfterSeconds).toBe(1);
    expect(codes('9.9.9.8', 1)).toEqual([WRONG]);
    pass(1_000);
    expect(codes('9.9.9.9', 2)).toEqual([WRONG, LIMITED]);
  });

  it('WrongKeys: addresses of one /64 count together', () => {
    const { codes } = setUp();
    const last = [1, 2, 3, 4].flatMap((host) => codes(`2001:db8::${host}`, 1)).at(-1);
    expect(last).toBe(LIMITED);
    expect(codes('2001:db8:0:1::1', 1)).toEqual([WRONG]);
  });

  it('WrongKeys: on a unix socket nothing is counted', () => {
    expect(new Set(setUp().codes(undefined, 50))).toEqual(new Set([WRONG]));
  });
});
