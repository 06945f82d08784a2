import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSaasStubExtension } from '../../../src/extensions/saas-stub/create.ts';
import type { RunningStub } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { loadConfig } from '../../../src/main/config/config.ts';
import type { RunningServer } from '../../../src/main/serve.ts';
import { serve } from '../../../src/main/serve.ts';
import { removeDir, temporaryDir } from '../../support/child-server.ts';
import type { CallOptions } from '../http/fixture.ts';
import { answerTo, responseTo, send } from '../http/fixture.ts';
import type { Open, World } from './open-streams.ts';
import { KINDS, LARGE_BYTES } from './open-streams.ts';

const SERVICE = `
const http = require('http');
const server = http.createServer((req, res) => {
  if (req.url === '/stream') return void res.write('first ');
  res.end('whole');
});
server.on('upgrade', (req, socket) => { socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\n\\r\\n'); socket.pipe(socket); });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** How soon everything that is open has ended. A stream that stays is seen by no other time. */
const SOON_MS = 20_000;

const dir = temporaryDir();
let stub: RunningStub;
let server: RunningServer;
let world: World;

const call = (method: string, path: string, options?: CallOptions) =>
  answerTo(send({ socketPath: server.socketPath }, method, path, options));

async function must(status: number, method: string, path: string, options?: CallOptions) {
  const answer = await call(method, path, options);
  if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.json;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

interface Key {
  readonly key_id: string;
  readonly secret: string;
}

function makeKey(request: object = {}, maker?: string): Promise<Key> {
  const json = { name: 'k', scopes: ['read', 'sandboxes', 'keys'], ...request };
  return must(201, 'POST', '/v1/keys', { json, ...(maker === undefined ? {} : { headers: bearer(maker) }) });
}

async function portOf(sandbox: string, processId: string): Promise<number> {
  const path = `/v1/sandboxes/${sandbox}/processes/${processId}/output?from=0`;
  const headers = { accept: 'application/x-ndjson' };
  const response = await responseTo(send({ socketPath: server.socketPath }, 'GET', path, { headers }));
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    const port = /"data":"(\d+)\\n"/.exec(text)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(text);
}

beforeAll(async () => {
  stub = await startStubServer();
  const env = {
    SANDBOXER_STATE_DIR: dir,
    SANDBOXER_LOG_LEVEL: 'silent',
    SANDBOXER_LOCAL: '0',
    SANDBOXER_DOCKER: '0',
  };
  const extensions = [createSaasStubExtension({ transport: stub.transport(), price: null })];
  server = await serve({ config: loadConfig(env), env, extensions });
  const json = { profile: 'profile.stub-basic' };
  const { sandbox_id: sandbox } = await must(201, 'POST', '/v1/sandboxes', { json });
  const inBackground = (command: unknown) =>
    must(202, 'POST', `/v1/sandboxes/${sandbox}/exec`, { json: { command, background: true } });
  const { process_id } = await inBackground([process.execPath, '-e', SERVICE]);
  const talker = await inBackground('i=0; while :; do echo $i > beat; echo on; sleep 0.1; done');
  const large = `head -c ${LARGE_BYTES} /dev/zero > large`;
  await must(200, 'POST', `/v1/sandboxes/${sandbox}/exec`, { json: { command: large } });
  world = {
    socketPath: server.socketPath,
    sandbox,
    port: await portOf(sandbox, process_id),
    backgroundProcess: talker.process_id,
  };
});

afterAll(async () => {
  await server?.stop();
  await stub?.stop();
  removeDir(dir);
});

/** How each kind of stream ended, or that it did not. */
async function endsOf(opened: ReadonlyMap<string, Open>): Promise<Record<string, string>> {
  const late = sleep(SOON_MS, 'still open', { ref: false });
  const ends = [...opened].map(async ([kind, { over }]) => [kind, await Promise.race([over, late])] as const);
  return Object.fromEntries(await Promise.all(ends));
}

const EXPECTED = Object.fromEntries(Object.entries(KINDS).map(([kind, [ends]]) => [kind, ends]));

interface Ending {
  make(): Promise<Key>;
  end(key: Key): Promise<unknown>;
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  'is revoked': {
    make: () => makeKey(),
    end: ({ key_id }) => must(200, 'DELETE', `/v1/keys/${key_id}`),
  },
  'revokes itself': {
    make: () => makeKey(),
    end: ({ key_id, secret }) => must(200, 'DELETE', `/v1/keys/${key_id}`, { headers: bearer(secret) }),
  },
  'is rotated without an overlap': {
    make: () => makeKey(),
    end: ({ key_id }) => must(201, 'POST', `/v1/keys/${key_id}/rotate`),
  },
  'comes to the end of the overlap after a rotation': {
    make: () => makeKey(),
    end: ({ key_id }) => must(201, 'POST', `/v1/keys/${key_id}/rotate`, { json: { overlap: 1 } }),
  },
  expires: {
    make: () => makeKey({ expires_in: 8 }),
    end: async () => {},
  },
  'was made by a key that is revoked': {
    make: async () => {
      const maker = await makeKey();
      const made = await makeKey({ scopes: ['read', 'sandboxes'] }, maker.secret);
      return { ...made, key_id: maker.key_id };
    },
    end: ({ key_id }) => must(200, 'DELETE', `/v1/keys/${key_id}`),
  },
};

describe('streams of a key end with the key', () => {
  for (const [name, { make, end }] of Object.entries(ENDINGS)) {
    it(`${name}`, async () => {
      const key = await make();
      const other = await makeKey();
      const opened = new Map<string, Open>();
      for (const [kind, [, open]] of Object.entries(KINDS)) opened.set(kind, await open(world, key.secret));
      const headers = { ...bearer(other.secret), accept: 'text/event-stream' };
      const neighbour = await responseTo(send(world, 'GET', '/v1/events', { headers }));
      await end(key);
      expect(await endsOf(opened)).toEqual(EXPECTED);
      expect((await call('GET', '/v1/whoami', { headers: bearer(key.secret) })).status).toBe(401);
      expect(neighbour.destroyed).toBe(false);
      neighbour.destroy();
    });
  }
});

it('events of a workspace end when the workspace is deleted, also for an administrator of the server', async () => {
  await must(201, 'POST', '/v1/workspaces', { json: { workspace_id: 'short', org_id: 'default' } });
  const { secret } = await makeKey({ workspace_id: 'short', scopes: ['read'] });
  const accept = { accept: 'text/event-stream' };
  const streams = [
    { ...bearer(secret), ...accept },
    { 'sandboxer-workspace': 'short', ...accept },
  ];
  const responses = await Promise.all(
    streams.map((headers) => responseTo(send(world, 'GET', '/v1/events', { headers }))),
  );
  const texts = responses.map(async (response) => {
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return text;
  });
  await must(204, 'DELETE', '/v1/workspaces/short');
  const late = sleep(SOON_MS, 'still open', { ref: false });
  expect(await Promise.race([Promise.all(texts), late])).toEqual([
    expect.stringContaining(': closing SBX_'),
    expect.stringContaining(': closing SBX_'),
  ]);
});

it('a preview made by a key stays refused after a restart, and one of the local administrator works on', async () => {
  const key = await makeKey();
  const path = `/v1/sandboxes/${world.sandbox}/ports`;
  const json = { port: world.port, public: true };
  const ofKey = await must(200, 'POST', path, { json, headers: bearer(key.secret) });
  const ofLocal = await must(200, 'POST', path, { json });
  const { visit } = await import('./open-streams.ts');
  const status = async ({ url }: { url: string }, port: string) => {
    const address = new URL(url);
    address.port = port;
    const response = await visit(address, '/');
    response.resume();
    return response.statusCode;
  };
  const { port } = new URL(ofKey.url);
  expect([await status(ofKey, port), await status(ofLocal, port)]).toEqual([200, 200]);
  await must(200, 'DELETE', `/v1/keys/${key.key_id}`);
  expect([await status(ofKey, port), await status(ofLocal, port)]).toEqual([410, 200]);

  await server.stop();
  writeFileSync(join(dir, 'config.yaml'), 'preview: { listen: "127.0.0.1:0" }\n');
  const env = {
    SANDBOXER_STATE_DIR: dir,
    SANDBOXER_CONFIG: join(dir, 'config.yaml'),
    SANDBOXER_LOG_LEVEL: 'silent',
    SANDBOXER_LOCAL: '0',
    SANDBOXER_DOCKER: '0',
  };
  const extensions = [createSaasStubExtension({ transport: stub.transport(), price: null })];
  server = await serve({ config: loadConfig(env), env, extensions });
  const again = new URL((await must(200, 'POST', path, { json })).url).port;
  expect([await status(ofKey, again), await status(ofLocal, again)]).toEqual([410, 200]);
});
