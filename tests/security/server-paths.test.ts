/**
 * A server reads its own disk for nobody who comes with a key. Every field of a request that could be taken for a path,
 * with everything that could make it one.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerTo, MEMORY_PROFILE, send } from '../integration/http/fixture.ts';
import { TestServer } from '../support/test-server.ts';

const CANARY = 'content-of-the-server’s-own-disk';

let server: TestServer;
let key: string;
let target: { host: string; port: number };
const dir = mkdtempSync(join(tmpdir(), 'sandboxer-paths-'));
const file = join(dir, 'canary');

beforeAll(async () => {
  writeFileSync(file, CANARY);
  writeFileSync(join(dir, 'compose.yml'), CANARY);
  server = await TestServer.start((config) => ({ listen: { ...config.listen, tcp: '127.0.0.1:0' } }));
  key = await server.key('default', 'adm', ['read', 'sandboxes', 'profiles', 'credits', 'keys', 'webhooks']);
  const { hostname, port } = new URL(server.running.tcpAddress as string);
  target = { host: hostname, port: Number(port) };
});
afterAll(async () => {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

async function post(path: string, json: unknown) {
  return answerTo(send(target, 'POST', path, { json, headers: { authorization: `Bearer ${key}` } }));
}

/** Ways to say where a file of the server is. */
function waysTo(path: string): string[] {
  return [
    path,
    `file://${path}`,
    `file:${path}`,
    `FILE://${path}`,
    `file://localhost${path}`,
    relative(process.cwd(), path),
    `./${relative(process.cwd(), path)}`,
    `../../../../../../../../..${path}`,
    '~',
    '~/.ssh',
    '~root/.ssh',
    '.',
    '/',
    '/proc/self/environ',
    `-${path}`,
    `--upload-pack=cat ${path}`,
    `ext::cat ${path}`,
    `fd::3/${path}`,
    `git+file://${path}`,
    `https://localhost${path}#--upload-pack=cat`,
    `https://localhost/${path}/../..#../x`,
    `ssh://-oProxyCommand=cat/${path}`,
    `\\\\?\\${path}`,
    `${path}\u0000.tar`,
  ];
}

type Field = readonly [name: string, request: (value: string) => object, reaction: 'refused' | 'opaque'];

const inputs = (name: string, wrap: (value: string) => unknown = (value) => value): Field['1'] => {
  return (value) => ({ inputs: { [name]: wrap(value) } });
};
const TREES = ['workspace', 'repo', 'files', 'compose_bundle'];

/** Every field that takes, or might be thought to take, a path. */
const FIELDS: readonly Field[] = [
  ...TREES.flatMap((name): Field[] => [
    [`inputs.${name}`, inputs(name), 'refused'],
    [`inputs.${name}_ref`, inputs(`${name}_ref`), 'refused'],
    [`inputs.${name}.git`, inputs(name, (git) => ({ git })), 'refused'],
    [`inputs.${name}.upload`, inputs(name, (upload) => ({ upload })), 'refused'],
  ]),
  ['inputs.repo.ref', inputs('repo', (ref) => ({ git: 'https://git.invalid/x.git', ref })), 'refused'],
  ['inputs.repo upload', inputs('repo', (value) => `upload:${value}`), 'refused'],
  ['workspace.source', (source) => ({ workspace: { source } }), 'refused'],
  ['workspace.source.git', (git) => ({ workspace: { source: { git } } }), 'refused'],
  ['workspace.path', (path) => ({ workspace: { path } }), 'refused'],
  ['inputs.mounts', inputs('mounts', (source) => [{ source, target: '/mnt/x' }]), 'refused'],
  ['inputs.anything', inputs('anything'), 'opaque'],
  ['image', (image) => ({ image }), 'refused'],
  ['setup_metadata.instructions_ref', (ref) => ({ setup_metadata: { instructions_ref: ref } }), 'opaque'],
  ['setup_metadata.secret_refs', (ref) => ({ setup_metadata: { secret_refs: [`file:${ref}`] } }), 'refused'],
];

/** A bundle that is neither absolute nor leads up is a place in the repository: text that is only handed on. */
function isPlaceInRepository(name: string, value: string): boolean {
  return /compose_bundle(?:_ref)?$/.test(name) && !/^[-~/\\]|\.\.|:|\\|\u0000/.test(value);
}

describe('over TCP with an administrator’s key', () => {
  for (const [name, request, reaction] of FIELDS) {
    test(name, async () => {
      for (const value of [...waysTo(file), ...waysTo(dir)]) {
        const answer = await post('/v1/sandboxes', { profile: MEMORY_PROFILE.id, ...request(value) });
        const what = `${name} = ${JSON.stringify(value)}: ${answer.status} ${answer.text.slice(0, 300)}`;
        expect(answer.text.includes(CANARY), what).toBe(false);
        if (answer.status === 201) {
          expect(reaction === 'opaque' || isPlaceInRepository(name, value), what).toBe(true);
          expect(answer.json.inputs, what).toEqual([]);
          const at = `/v1/sandboxes/${answer.json.sandbox_id}`;
          const headers = { authorization: `Bearer ${key}` };
          const tree = await answerTo(send(target, 'GET', `${at}/files/tree?path=.`, { headers }));
          expect(tree.text.includes(CANARY), what).toBe(false);
          await answerTo(send(target, 'DELETE', at, { headers }));
        } else {
          expect([400, 403, 404, 409, 422], what).toContain(answer.status);
        }
      }
    });
  }

  test('the table has every such field of a create', async () => {
    const { components } = (await server.call('GET', '/v1/openapi.json')).json;
    const { properties } = components.schemas.CreateSandboxRequest;
    const suspicious = Object.keys(properties).filter((name) =>
      /path|file|ref|source$|image|inputs|workspace/.test(name),
    );
    const known = FIELDS.map(([name]) => name.split('.')[0]);
    // A profile is named by its id, a reference to the catalogue.
    expect(suspicious.filter((name) => !known.includes(name) && !/^profile/.test(name))).toEqual([]);
    const ofWorkspace = Object.keys(properties.workspace.properties);
    expect(ofWorkspace.sort()).toEqual(['access', 'mode', 'source']);
  });
});

test('the administrator on the unix socket may name a directory, and only an absolute one', async () => {
  const create = (repo: string) =>
    server.call('POST', '/v1/sandboxes', { json: { profile: MEMORY_PROFILE.id, inputs: { repo } } });
  for (const repo of [dir, `file://${dir}`]) {
    const { json } = await create(repo);
    expect(json.inputs).toMatchObject([{ name: 'repo', source: 'path' }]);
    const { text } = await server.call('GET', `/v1/sandboxes/${json.sandbox_id}/files?path=workspace/canary`);
    expect(text).toBe(CANARY);
  }
  for (const repo of [relative(process.cwd(), dir), '~', '.', 'file:relative']) {
    expect((await create(repo)).json.code).toBe('SBX_REF_REFUSED');
  }
  // The same socket with a key is somebody else.
  const json = { profile: MEMORY_PROFILE.id, inputs: { repo: dir } };
  expect((await server.call('POST', '/v1/sandboxes', { key, json })).json.code).toBe('SBX_REF_REFUSED');
});
