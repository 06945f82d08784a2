import { describe, expect, it, vi } from 'vitest';
import { IsolationLevel } from '../../contract/extensions/capability.ts';
import { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { KeyScope } from '../../contract/tenancy/tenancy.ts';
import { SandboxState } from '../../contract/values/state.ts';
import { KEY_SCOPES } from '../commands/account/keys.ts';
import { placeOf } from '../commands/inside/cp.ts';
import { NOT_DESTROYED } from '../commands/sandboxes/list.ts';
import { nearestName } from '../failures/nearest-name.ts';
import { UsageError } from '../failures/usage-error.ts';
import { createRequestOf, ISOLATION_LEVELS } from './create-options.ts';
import { duration, durationSeconds, microUsd, portPair, size } from './numbers.ts';
import { pairs, variables } from './pairs.ts';

describe('values of flags', () => {
  it('values of flags are read in human spelling', () => {
    expect(duration('90')).toBe(90);
    expect(duration('1h30m')).toBe('1h30m');
    expect(durationSeconds('1h30m')).toBe(5400);
    expect(microUsd('$0.25')).toBe(250_000);
    expect(microUsd('5')).toBe(5_000_000);
    expect(['2gb', '512 MiB', '1.5g', '64'].map(size)).toEqual(['2GB', '512MiB', '1.5G', '64MiB']);
    expect(portPair('8080')).toEqual({ local: 8080, remote: 8080 });
    expect(portPair('9000:80')).toEqual({ local: 9000, remote: 80 });
    expect(pairs('label')('a=b=c', { x: 'y' })).toEqual({ x: 'y', a: 'b=c' });
    process.env.SBX_TEST_VARIABLE = 'here';
    expect(variables('SBX_TEST_VARIABLE', undefined)).toEqual({ SBX_TEST_VARIABLE: 'here' });
  });

  it.each([
    () => duration('soon'),
    () => microUsd('-1'),
    () => microUsd('0'),
    () => size('2 apples'),
    () => portPair('0'),
    () => portPair('80:70000'),
    () => pairs('label')('nothing', undefined),
    () => variables('SBX_TEST_NOT_SET', undefined),
    () => createRequestOf({ input: ['x:={'] }),
    () => createRequestOf({ input: ['x'] }),
  ])('values of flags are refused where they make no sense: %s', (parse) => {
    expect(parse).toThrow(UsageError);
  });
});

describe('choices of an option', () => {
  it('choices of an option are those that the API knows', () => {
    expect([...KEY_SCOPES].sort()).toEqual([...KeyScope.options].sort());
    expect([...ISOLATION_LEVELS].sort()).toEqual([...IsolationLevel.options].sort());
    expect([...NOT_DESTROYED, 'destroyed'].sort()).toEqual([...SandboxState.options].sort());
  });
});

describe('createRequestOf', () => {
  it('createRequestOf holds only the fields that were asked for', () => {
    expect(createRequestOf({})).toEqual({});
  });

  it('createRequestOf targets the host that is named, or that SANDBOXER_HOST names', () => {
    vi.stubEnv('SANDBOXER_HOST', 'lab1');
    expect(createRequestOf({})).toEqual({ route: { host: 'lab1' } });
    expect(createRequestOf({ host: 'lab2' })).toEqual({ route: { host: 'lab2' } });
    vi.stubEnv('SANDBOXER_HOST', '');
    expect(createRequestOf({})).toEqual({});
    vi.unstubAllEnvs();
  });

  it('createRequestOf returns a request that the API understands', () => {
    const request = createRequestOf({
      profile: 'agent-dev@1.0.0',
      id: 'mine',
      ttl: '2h',
      idleReap: 'never',
      input: ['repo=/no/such/path', 'here=.', 'flag:=true', 'text==x'],
      label: { a: 'b' },
      scope: 'session',
      cpu: 2,
      memory: '2GiB',
      extension: ['ext.local'],
      strategy: 'lowest-cost',
      isolation: 'microvm',
      maxCostPerHour: 1.5,
      egress: ['example.org', 'example.com:8443'],
      secret: ['env:TOKEN'],
      harness: 'glas-harness',
      session: 's1',
    });
    expect(CreateSandboxRequest.parse(request)).toMatchObject({
      ttl: 7200,
      idle_reap: null,
      inputs: { repo: '/no/such/path', here: '.', flag: true, text: '=x' },
      resources: { cpu: 2, memory_mb: 2048 },
      route: { only: ['ext.local'], constraints: { require_isolation: 'microvm', max_cost_per_hour: 1.5 } },
      network: {
        default: 'deny',
        egress: [
          { host: 'example.org', port: 443 },
          { host: 'example.com', port: 8443 },
        ],
      },
      consumer: { harness: 'glas-harness', session_id: 's1' },
    });
  });
});

describe('placeOf', () => {
  it.each([
    ['sbx_1:/tmp/x', 'sbx_1', '/tmp/x'],
    ['box:', 'box', '.'],
    ['box:a:b', 'box', 'a:b'],
    ['./a:b', null, './a:b'],
    ['/a:b', null, '/a:b'],
    ['-', null, '-'],
    ['dir/x', null, 'dir/x'],
  ])('%s', (text, sandboxId, path) => {
    expect(placeOf(text)).toEqual({ sandboxId, path });
  });
});

describe('nearestName', () => {
  it.each([
    ['lst', 'list'],
    ['lsit', 'list'],
    ['cretae', 'create'],
    ['destory', 'destroy'],
    ['snap', 'snapshot'],
    ['xyzzy', null],
  ])('%s → %s', (word, name) => {
    expect(nearestName(word, ['list', 'ls', 'create', 'destroy', 'snapshot', 'run'])).toBe(name);
  });
});
