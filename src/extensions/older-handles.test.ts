/** Tests that each built-in extension reads handles of every version that was ever written, and none that is newer. */
import { describe, expect, it } from 'vitest';
import type { Json } from '../contract/values/json.ts';
import type { VersionedHandle } from '../core/ports/extension.ts';
import { handles as compose } from './compose-ssh/handle.ts';
import { handles as docker } from './docker/handle.ts';
import { handles as local } from './local/handle.ts';
import { handles as stub } from './saas-stub/handle.ts';
import { handles as ssh } from './ssh/handle.ts';

type Reader = Pick<VersionedHandle<never, unknown>, 'version' | 'read'>;

const STACK = {
  project: 'sbx0123456789abcdef0123',
  owner: 'own_1',
  service: 'web',
  services: ['web'],
  ports: { '80': 'web' },
  gateway: {},
  wait_for: [],
  wait_seconds: 60,
  keep_images: false,
  notes: [],
};
const CONTAINER = 'sbx.own_5f1.sbx_5f1.att_5f1';
const STAMP = { owner: 'own_1', sandboxUid: 'sbx_1', attemptId: 'att_1' };
const DIRECTORY = { attemptId: 'att_1', directory: '/home/u/.sandboxer', agent: '/a', variables: { A: '1' } };

/** Every shape of a handle as it was written, and the result of reading it. */
const WRITTEN: readonly [extension: string, reader: Reader, version: number, data: Json, read: unknown][] = [
  ['ext.local', local, 1, { attempt_id: 'att_1', owner: 'own_1' }, { attempt_id: 'att_1', owner: 'own_1' }],
  ['ext.docker', docker, 1, { container: CONTAINER }, { name: CONTAINER, stamp: STAMP, variables: {} }],
  [
    'ext.docker',
    docker,
    1,
    { container: CONTAINER, variables: { A: '1' } },
    { name: CONTAINER, stamp: STAMP, variables: { A: '1' } },
  ],
  [
    'ext.docker',
    docker,
    2,
    { container: CONTAINER, variables: { A: '1' } },
    { name: CONTAINER, stamp: STAMP, variables: { A: '1' } },
  ],
  [
    'ext.compose-ssh',
    compose,
    1,
    STACK,
    { ...STACK, secret_variables: [], engine: { kind: 'rootful', endpoint: null } },
  ],
  [
    'ext.compose-ssh',
    compose,
    1,
    { ...STACK, secret_variables: ['KEY'], engine: { kind: 'rootless', endpoint: 'unix:///run/s' } },
    { ...STACK, secret_variables: ['KEY'], engine: { kind: 'rootless', endpoint: 'unix:///run/s' } },
  ],
  [
    'ext.compose-ssh',
    compose,
    2,
    { ...STACK, secret_variables: ['KEY'], engine: { kind: 'rootful', endpoint: null } },
    { ...STACK, secret_variables: ['KEY'], engine: { kind: 'rootful', endpoint: null } },
  ],
  ['ext.ssh', ssh, 1, DIRECTORY, { ...DIRECTORY, isolation: 'none', files: false, secrets: null }],
  [
    'ext.ssh',
    ssh,
    2,
    { ...DIRECTORY, isolation: 'policy', files: true, secrets: { directory: '/s', environment: true } },
    { ...DIRECTORY, isolation: 'policy', files: true, secrets: { directory: '/s', environment: true } },
  ],
  ['ext.saas-stub', stub, 1, { name: 'sb-1', owner: 'own_1' }, { name: 'sb-1', owner: 'own_1' }],
];
const READERS: readonly [string, Reader][] = [
  ['ext.local', local],
  ['ext.docker', docker],
  ['ext.compose-ssh', compose],
  ['ext.ssh', ssh],
  ['ext.saas-stub', stub],
];

describe('handles', () => {
  it.each(WRITTEN)('%s: a written handle is read (case %#)', (_id, reader, version, data, read) => {
    expect(reader.read({ version, data })).toEqual(read);
  });

  it.each(READERS)('%s: every version from 1 to the current one has a case above', (id, { version }) => {
    const tried = new Set(WRITTEN.flatMap(([name, , tried]) => (name === id ? [tried] : [])));
    expect([...tried]).toEqual(Array.from({ length: version }, (_, at) => at + 1));
  });

  it.each(READERS)('%s: a newer handle is refused with the remedy', (id, reader) => {
    const [, , , data] = WRITTEN.findLast(([name]) => name === id) as (typeof WRITTEN)[number];
    expect(() => reader.read({ version: reader.version + 1, data })).toThrow(
      expect.objectContaining({
        code: 'SBX_EXTENSION_FAILED',
        retryable: false,
        remedy: expect.stringContaining('or a newer one'),
      }),
    );
  });

  it.each(READERS)('%s: damaged data is refused', (_id, reader) => {
    for (const data of [null, {}, [], 'x', { container: 'not-ours', variables: {} }])
      expect(() => reader.read({ version: reader.version, data })).toThrow(/cannot be read/);
  });
});
