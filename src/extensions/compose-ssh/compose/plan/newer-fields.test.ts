import { describe, expect, it } from 'vitest';
import { isBefore, knownTo } from './newer-fields.ts';

const SERVICE = {
  image: 'x',
  healthcheck: { test: ['CMD', 'true'], start_interval: '1s' },
  networks: { front: { gw_priority: 1, aliases: ['a'] }, back: {} },
  volumes: [{ target: '/a' }, { target: '/b', tmpfs: { mode: 511 } }],
};

describe('isBefore', () => {
  it.each([
    ['1.29', '2.0', true],
    ['2.9.0', '2.20.2', true],
    ['2.20', '2.20.2', true],
    ['2.20.2', '2.20.2', false],
    ['5.0.0', '2.36.0', false],
    ['2.0.0', '2.0', false],
  ])('%s is before %s: %s', (version, other, expected) => {
    expect(isBefore(version, other)).toBe(expected);
  });
});

describe('knownTo', () => {
  it('knownTo leaves a service unchanged for a compose that knows all its fields', () => {
    expect(knownTo('2.36.0', SERVICE)).toEqual({ service: SERVICE, unknown: [] });
  });

  it('knownTo removes fields that an older compose does not know, and reports their place and effect', () => {
    const { service, unknown } = knownTo('1.29', SERVICE);
    expect(service).toEqual({
      image: 'x',
      healthcheck: { test: ['CMD', 'true'] },
      networks: { front: { aliases: ['a'] }, back: {} },
      volumes: [{ target: '/a' }, { target: '/b', tmpfs: {} }],
    });
    expect(unknown.map(({ place, field }) => [place, field.otherwise])).toEqual([
      ['healthcheck.start_interval', 'dropped'],
      ['networks.front.gw_priority', 'refused'],
      ['volumes.1.tmpfs.mode', 'refused'],
    ]);
  });
});
