import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import type { ResolvedConfig } from '../../../src/main/config/config.ts';
import { TestServer, until } from '../../support/test-server.ts';
import type { Behaviour } from '../../support/webhook-receiver.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';
import { seededRandom } from '../kill-nine/seeded-random.ts';

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** Impatient, so that a test sees in a second what takes a day. */
function impatient(over: Partial<ResolvedConfig['webhooks']> = {}) {
  return (config: ResolvedConfig): Partial<ResolvedConfig> => ({
    timing: { ...config.timing, first_retry: 10, longest_retry: 50 },
    webhooks: {
      ...config.webhooks,
      allow_private: true,
      timeout: 10_000,
      longest_retry: 50,
      max_tries: 100,
      disable_after: 1000,
      ...over,
    },
  });
}

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part.close();
});

async function begin(over?: Partial<ResolvedConfig['webhooks']>) {
  const receiver = await new WebhookReceiver().listen();
  open.push(receiver);
  const server = await TestServer.start(impatient(over));
  open.push(server);
  return { receiver, server };
}

async function hook(server: TestServer, receiver: WebhookReceiver, more: object = {}) {
  const created = await server.expect(201, 'POST', '/v1/webhooks', { json: { url: receiver.url, ...more } });
  receiver.secrets.push(created.secret);
  return created;
}

describe('delivery', () => {
  it(`webhooks reach a receiver that fails, hangs, loses answers and restarts, in order per sandbox (SEED=${SEED})`, async () => {
    const { receiver, server } = await begin({ timeout: 300 });
    await hook(server, receiver);
    const random = seededRandom(SEED);
    const moods: Behaviour[] = [
      'take',
      'take',
      'take',
      'fail',
      'slow',
      'close',
      'lost',
      'hang',
      'redirect',
      'flood',
    ];
    receiver.behave = () => moods[Math.floor(random() * moods.length)] as Behaviour;
    receiver.redirectTo = receiver.url;
    const life = async (n: number) => {
      const id = await server.sandbox({ id: `box-${n}` });
      for (let i = 0; i < 4; i++)
        await server.call('POST', `/v1/sandboxes/${id}/extend`, { json: { ttl: `${20 + i}m` } });
      await server.expect(200, 'DELETE', `/v1/sandboxes/${id}`);
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => life(n)));
    await receiver.close();
    await sleep(200);
    await server.stop();
    await server.start();
    await receiver.listen();
    await Promise.all(Array.from({ length: 8 }, (_, n) => life(100 + n)));
    await until('it was refused often', () => receiver.refused.length > 5);
    receiver.behave = () => 'take';
    const events = (await server.events()).filter(({ type }) => type.startsWith('sandbox.'));
    await until('everything arrived', () => {
      const ids = receiver.ids();
      return events.every(({ id }) => ids.has(id));
    });
    expect(events.length).toBeGreaterThan(16 * 8);
    expect(receiver.forged).toEqual([]);
    for (const subject of new Set(events.map((event) => event.subject as string))) {
      const order = receiver.firstOrder(subject);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
    }
    const [webhook] = (await server.expect(200, 'GET', '/v1/webhooks')).items;
    expect(webhook).toMatchObject({ enabled: true, dead: 0, lag: 0 });
    const [sample] = receiver.taken;
    expect(sample?.headers['content-type']).toBe('application/cloudevents+json');
    expect(sample?.headers['webhook-id']).toBe(sample?.event.id);
    expect(sample?.event).toMatchObject({ specversion: '1.0', datacontenttype: 'application/json' });
  });

  it('webhook delivery serves different sandboxes at the same time, over few connections', async () => {
    const { receiver, server } = await begin();
    receiver.behave = () => 'slow';
    await Promise.all(Array.from({ length: 16 }, (_, n) => server.sandbox({ id: `s-${n}` })));
    const { webhook_id } = await hook(server, receiver);
    await server.expect(202, 'POST', `/v1/webhooks/${webhook_id}/replay?from=1`);
    const count = (await server.events()).length;
    await until('all told', () => receiver.ids().size === count);
    expect(receiver.mostAtOnce).toBeGreaterThan(3);
    expect(receiver.connections).toBeLessThanOrEqual(12);
  });

  it('a webhook starts with events after its creation and ends with its deletion', async () => {
    const { receiver, server } = await begin();
    await server.sandbox({ id: 'before' });
    const { webhook_id } = await hook(server, receiver, { types: ['sandbox.ready', 'sandbox.destroyed'] });
    await server.sandbox({ id: 'after' });
    await until('it is told', () => receiver.taken.length === 1);
    expect(receiver.taken[0]?.event).toMatchObject({ type: 'sandbox.ready', data: { sandbox_id: 'after' } });
    await server.expect(204, 'DELETE', `/v1/webhooks/${webhook_id}`);
    await server.expect(200, 'DELETE', '/v1/sandboxes/after');
    await sleep(200);
    expect(receiver.taken.length).toBe(1);
    await server.expect(404, 'GET', `/v1/webhooks/${webhook_id}`);
    const sinks = await server.running.control.store.read('test', (tx) => tx.outbox.sinks());
    expect(sinks.map(({ sinkId }) => sinkId)).not.toContain(`webhook:${webhook_id}`);
  });

  it('a ping is sent, and a failed one gives the reason', async () => {
    const { receiver, server } = await begin({ timeout: 3_000 });
    const { webhook_id } = await hook(server, receiver);
    const ping = () => server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/ping`);
    expect(await ping()).toMatchObject({ taken: true, error: null });
    expect(receiver.taken[0]?.event.type).toBe('webhook.ping');
    expect(receiver.forged).toEqual([]);
    receiver.behave = () => 'fail';
    expect(await ping()).toMatchObject({ taken: false, error: 'The receiver answered 500.' });
    receiver.behave = () => 'hang';
    expect(await ping()).toMatchObject({ taken: false, error: 'There was no answer within 3000 ms.' });
  });

  it('webhook delivery does not follow redirects', async () => {
    const { receiver, server } = await begin();
    const elsewhere = await new WebhookReceiver().listen();
    open.push(elsewhere);
    receiver.behave = () => 'redirect';
    receiver.redirectTo = elsewhere.url;
    const { webhook_id } = await hook(server, receiver);
    expect((await server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/ping`)).taken).toBe(false);
    expect(elsewhere.connections).toBe(0);
  });
});

describe('dead letters', () => {
  it('dead letters are visible, block nothing, and can be replayed', async () => {
    const { receiver, server } = await begin({ max_tries: 2 });
    const { webhook_id } = await hook(server, receiver);
    receiver.behave = ({ event }) => (event.data.sandbox_id === 'bad' ? 'fail' : 'take');
    await server.sandbox({ id: 'bad' });
    await server.sandbox({ id: 'good' });
    const base = `/v1/webhooks/${webhook_id}`;
    const dead = async () => (await server.expect(200, 'GET', `${base}/deliveries?state=dead`)).items;
    const bad = (await server.events()).filter(({ data }) => data.sandbox_id === 'bad');
    await until('all of the bad one are dead', async () => (await dead()).length === bad.length);
    expect(receiver.taken.some(({ event }) => event.data.sandbox_id === 'good')).toBe(true);
    const [first] = await dead();
    expect(first).toMatchObject({
      state: 'dead',
      sandbox_id: 'bad',
      type: 'sandbox.requested',
      tries: 2,
      next_try_at: null,
      last_error: 'The receiver answered 500.',
    });
    expect(await server.expect(200, 'GET', base)).toMatchObject({ dead: bad.length, parked: 0, lag: 0 });
    receiver.behave = () => 'take';
    expect(await server.expect(202, 'POST', `${base}/deliveries/${first.seq}/replay`)).toMatchObject({
      state: 'waiting',
    });
    await until('it arrived', () => receiver.ids().has(first.event_id));
    await until('it is no longer listed', async () => (await dead()).length === bad.length - 1);
    await server.expect(404, 'POST', `${base}/deliveries/${first.seq}/replay`);

    const before = receiver.taken.length;
    expect(await server.expect(202, 'POST', `${base}/replay?from=${first.seq}`)).toEqual({ from: first.seq });
    const again = (await server.events()).filter(({ data }) => data.seq >= first.seq);
    await until('everything came again', () => receiver.taken.length >= before + again.length);
    expect(await dead()).toEqual([]);
  });

  it('disable the webhook when there are too many in a row; it goes on where it stopped', async () => {
    const { receiver, server } = await begin({ max_tries: 1, disable_after: 3 });
    const { webhook_id } = await hook(server, receiver);
    receiver.behave = () => 'fail';
    for (const n of [1, 2, 3, 4]) await server.sandbox({ id: `d-${n}` });
    const show = () => server.expect(200, 'GET', `/v1/webhooks/${webhook_id}`);
    await until('it is disabled', async () => !(await show()).enabled);
    const { disabled_reason } = await show();
    expect(disabled_reason).toContain('events in a row could not be delivered: The receiver answered 500.');
    await until('there is an event', async () =>
      (await server.events()).some(
        ({ type, data }) => type === 'webhook.disabled' && data.details.webhook_id === webhook_id,
      ),
    );
    receiver.behave = () => 'take';
    await server.sandbox({ id: 'meanwhile' });
    await sleep(150);
    expect(receiver.taken).toEqual([]);
    expect(await server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/enable`)).toMatchObject({
      enabled: true,
    });
    const { dead } = await show();
    const all = await server.events();
    const mine = all.filter(({ type }) => type.startsWith('sandbox.')).length;
    await until('what it missed arrived', () => receiver.ids().size >= mine - dead);
    expect((await show()).enabled).toBe(true);
  });

  it('410 disables at once', async () => {
    const { receiver, server } = await begin();
    const { webhook_id } = await hook(server, receiver);
    receiver.behave = () => 'gone';
    await server.sandbox();
    await until(
      'it is disabled',
      async () => !(await server.expect(200, 'GET', `/v1/webhooks/${webhook_id}`)).enabled,
    );
    const entries = (await server.expect(200, 'GET', '/v1/sinks')).items;
    expect(entries).toContainEqual(
      expect.objectContaining({ sink_id: `webhook:${webhook_id}`, status: 'disabled' }),
    );
  });
});

describe('secrets', () => {
  it('webhook secrets are shown once, stored sealed, and rotate with an overlap', async () => {
    const { receiver, server } = await begin();
    const { webhook_id, secret } = await hook(server, receiver);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const shown = JSON.stringify([
      await server.expect(200, 'GET', `/v1/webhooks/${webhook_id}`),
      await server.expect(200, 'GET', '/v1/webhooks'),
      await server.expect(200, 'GET', '/v1/audit'),
      await server.events(),
    ]);
    expect(shown).not.toContain(secret);
    expect(statSync(join(server.dir, 'master.key')).mode & 0o777).toBe(0o600);

    const rotated = await server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`);
    expect(rotated.secret).not.toBe(secret);
    await server.stop();
    await server.start();
    // Both verify: the receiver checks every secret it knows.
    receiver.secrets.push(rotated.secret);
    await server.sandbox();
    await until('it is told', () => receiver.taken.length > 2);
    expect(receiver.forged).toEqual([]);
    await server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/rotate-secret`, { json: { overlap: null } });
    await server.expect(200, 'POST', `/v1/webhooks/${webhook_id}/ping`);
    expect(() => new Webhook(rotated.secret).verify('{}', {})).toThrow();
    expect(receiver.forged.length).toBe(2);

    await server.stop();
    const raw = secret.slice('whsec_'.length) as string;
    for (const file of readdirSync(server.dir).filter((name) => name.startsWith('sandboxer.db'))) {
      const bytes = readFileSync(join(server.dir, file));
      expect(bytes.includes(raw)).toBe(false);
      expect(bytes.includes(Buffer.from(raw, 'base64'))).toBe(false);
    }
  });
});
