/** SPEC §12: what the neighbours send, as they send it. The dots of the specification are filled in. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CapabilityVector } from '../../../src/contract/extensions/capability.ts';
import { StackInputs } from '../../../src/extensions/compose-ssh/stack/stack-inputs.ts';
import { createSaasStubExtension } from '../../../src/extensions/saas-stub/create.ts';
import { StubWorld } from '../../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../../src/extensions/saas-stub/world/world-transport.ts';
import { systemClock } from '../../../src/main/ports/system-clock.ts';
import { archiveOf } from '../../../src/testing/conformance/tar-archive.ts';
import type { Fixture } from './fixture.ts';
import { startFixture } from './fixture.ts';

const STRONG: Partial<CapabilityVector> = {
  isolation: ['container'],
  deny_all: true,
  egress: 'l7',
  credentials: ['broker', 'file', 'env'],
  pty: true,
  ports: true,
  demo: false,
  hosting: 'self-hosted',
  pricing: 'free',
};

function backend(id: string) {
  const transport = new WorldTransport(new StubWorld({ clock: systemClock }), systemClock);
  const extension = createSaasStubExtension({ id, transport, price: null, capabilities: STRONG });
  // Like the backends that stand behind these names, it takes repositories to where they belong by itself.
  const header = { ...extension.header, shipsInputs: true, inputs: StackInputs.shape };
  return Object.defineProperty(extension, 'header', { value: header });
}

let f: Fixture;
beforeAll(async () => {
  const env = { SANDBOXER_SECRET_NPM_TOKEN: 'hush' };
  f = await startFixture({ extensions: [backend('ext.strong'), backend('ext.compose-ssh')], env });
});
afterAll(() => f.close());

const REQUESTS = {
  'glas-harness': `{ "profile":"profile.agent-dev", "scope":"session", "workspace":{"mode":"mirror","access":"rw"},
  "consumer":{"actor":"agt","harness":"glas-harness","session_id":"s1"} }`,
  'wise-validator': `{ "profile":"profile.compose-e2e", "inputs":{"repo_ref":"{upload}","compose_bundle_ref":"bundle-1"}, "ttl":"2h",
  "consumer":{"actor":"atm","harness":"wise-validator","run_id":"r1"} }`,
  'snuggle-inventor': `{ "profile":"profile.build", "setup_metadata":{"instructions_ref":"docs/setup.md","secret_refs":["NPM_TOKEN"]},
  "consumer":{"actor":"agt","harness":"snuggle-inventor","job_id":"j1"} }`,
};

test.each(Object.entries(REQUESTS))('%s', async (harness, body) => {
  const headers = { 'content-type': 'application/json' };
  const archive = archiveOf([{ name: 'compose.yml', content: 'services: {}' }]);
  const { upload_id } = (await f.call('POST', '/v1/uploads', { body: archive })).json;
  const filled = body.replace('{upload}', `upload:${upload_id}`);
  const created = await f.call('POST', '/v1/sandboxes', { body: filled, headers });
  expect(created.json).toMatchObject({ state: 'ready', consumer: { harness } });
  expect(created.status).toBe(201);
  expect(created.json.reachability.exec_url).toBe(`${created.json.links.self}/exec`);
  expect(created.text).not.toContain('hush');
  const events = await f.call('GET', created.json.links.events);
  expect(events.json.items.map(({ type }: { type: string }) => type)).toContain('sandbox.ready');
  expect(events.json.items[0].data.consumer.harness).toBe(harness);
  const found = await f.call('GET', `/v1/sandboxes?harness=${harness}`);
  expect(found.json.items).toHaveLength(1);
});
