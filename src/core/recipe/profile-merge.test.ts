import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeProfile } from './profile-merge.ts';

const base = {
  id: 'profile.x',
  version: '1.0.0',
  ttl: { default: '1h', max: '4h' },
  network: { default: 'deny', egress: [{ host: 'a.example' }] },
};

describe('mergeProfile', () => {
  it('mergeProfile merges maps, replaces lists and scalars', () => {
    const change = { ttl: { max: '8h' }, network: { egress: [] }, labels: { team: 'red' } };
    expect(mergeProfile(base, [{ document: change, priority: 0 }])).toEqual({
      ...base,
      ttl: { default: '1h', max: '8h' },
      network: { default: 'deny', egress: [] },
      labels: { team: 'red' },
    });
  });

  it('mergeProfile takes null as “the default of the schema”', () => {
    const change = { ttl: null, network: { egress: null } };
    expect(mergeProfile(base, [{ document: change, priority: 0 }])).toEqual({
      id: 'profile.x',
      version: '1.0.0',
      network: { default: 'deny' },
    });
  });

  it('mergeProfile applies ascending priorities, equals in the given order', () => {
    const layer = (image: string, priority: number) => ({ document: { image }, priority });
    expect(mergeProfile(base, [layer('high', 2), layer('low', 1)])).toMatchObject({ image: 'high' });
    expect(mergeProfile(base, [layer('first', 1), layer('second', 1)])).toMatchObject({ image: 'second' });
  });

  it('mergeProfile keeps the identity of the base', () => {
    const document = { kind: 'override', id: 'profile.x', version: '2.0.0', priority: 5, image: 'debian' };
    expect(mergeProfile(base, [{ document, priority: 5 }])).toEqual({ ...base, image: 'debian' });
  });

  it('mergeProfile changes neither its arguments nor any prototype', () => {
    const before = structuredClone(base);
    const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "ttl": {"__proto__": {"polluted": 1}}}');
    mergeProfile(base, [{ document: hostile, priority: 0 }]);
    expect(base).toEqual(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('mergeProfile is idempotent, and an override of nothing changes nothing', () => {
    const documents = fc.dictionary(
      fc.constantFrom('a', 'b', 'c'),
      fc.letrec((tie) => ({
        value: fc.oneof(
          { maxDepth: 3 },
          fc.constantFrom(null, 1, 'x', [1]),
          fc.dictionary(fc.constantFrom('a', 'b'), tie('value')),
        ),
      })).value,
    );
    fc.assert(
      fc.property(documents, documents, (one, other) => {
        const layer = { document: other, priority: 0 };
        const once = mergeProfile(one, [layer]);
        expect(mergeProfile(once, [layer])).toEqual(once);
        expect(mergeProfile(one, [layer, layer])).toEqual(once);
        expect(mergeProfile(one, [{ document: {}, priority: 9 }])).toEqual(one);
      }),
    );
  });
});
