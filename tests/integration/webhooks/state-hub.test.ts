import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { TestServer, until } from '../../support/test-server.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { MEMORY_PROFILE } from '../http/fixture.ts';

const dir = mkdtempSync(join(tmpdir(), 'sandboxer-hub-'));
const tokenFile = join(dir, 'token');
writeFileSync(tokenFile, 'hub-token\n', { mode: 0o600 });
afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('the state hub reports that it is not configured', async () => {
  const server = await TestServer.start();
  try {
    const { items } = await server.expect(200, 'GET', '/v1/sinks');
    expect(items).toEqual([
      expect.objectContaining({
        sink_id: 'state-hub',
        kind: 'state-hub',
        status: 'not_configured',
        cursor: null,
      }),
      expect.objectContaining({ sink_id: 'fin-hub', kind: 'fin-hub', status: 'not_configured' }),
    ]);
  } finally {
    await server.close();
  }
});

it('the server loses and delays nothing while the hub is down', async () => {
  const hub = await new WebhookReceiver().listen();
  const url = hub.url;
  await hub.close();
  const server = await TestServer.start((config) => ({
    timing: { ...config.timing, first_retry: 10, longest_retry: 50 },
    state_hub: { url, token_file: tokenFile, timeout: 10_000 },
  }));
  try {
    const consumer = { actor: 'agt', harness: 'glas-harness', session_id: 's1', agent_id: 'a7' };
    const startedAt = performance.now();
    for (const id of ['a', 'b', 'c']) {
      await server.expect(201, 'POST', '/v1/sandboxes', {
        json: { profile: MEMORY_PROFILE.id, id, consumer },
      });
      await server.expect(200, 'DELETE', `/v1/sandboxes/${id}`);
    }
    expect(performance.now() - startedAt).toBeLessThan(60_000);
    const hubSink = async () => (await server.expect(200, 'GET', '/v1/sinks')).items[0];
    await until('its trouble is visible', async () => (await hubSink()).last_error !== null);
    expect(await hubSink()).toMatchObject({ status: 'active', endpoint: new URL(url).origin, dead: 0 });
    await server.stop();
    await server.start();
    await hub.listen();
    const events = (await server.events()).filter(({ type }) => /^s(?:andbox|napshot)\./.test(type));
    const ids = () => new Set(hub.taken.map(({ event }) => event.event_id));
    await until('everything arrived', () => events.every(({ id }) => ids().has(id)));
    for (const subject of new Set(events.map((event) => event.subject))) {
      const order = hub.taken
        .filter(({ event }) => event.detail.subject === subject)
        .map(({ event }) => event.detail.sequence);
      const first = [...new Set(order)];
      expect(first).toEqual(first.toSorted((a: number, b: number) => a - b));
    }
    const ready = hub.taken.find(({ event }) => event.event_type === 'sandbox.ready');
    expect(ready?.headers).toMatchObject({
      authorization: 'Bearer hub-token',
      'idempotency-key': ready?.event.event_id,
    });
    expect(ready?.event).toMatchObject({
      summary: expect.stringMatching(/^Sandbox [abc] is ready\.$/),
      harness: 'glas-harness',
      session_id: 's1',
      run_id: null,
      job_id: null,
      agent_id: 'a7',
      actor: 'atm',
      consumer_actor: 'agt',
      detail: { state: 'ready', previous_state: 'provisioning', workspace_id: 'default' },
    });
    await until('nothing is left', async () => {
      const { parked, lag } = await hubSink();
      return parked === 0 && lag === 0;
    });
    const before = hub.taken.length;
    const replayed = await server.expect(
      202,
      'POST',
      `/v1/sinks/state-hub/replay?from=${events[0]?.data.seq}`,
    );
    expect(replayed).toEqual({ from: events[0]?.data.seq });
    await until('it is told of everything again', () => hub.taken.length >= before + events.length);
    expect((await server.call('POST', '/v1/sinks/nobody/replay?from=1')).status).toBe(404);
  } finally {
    await server.close();
    await hub.close();
  }
});
