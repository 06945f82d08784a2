import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CloudEvent, EventPage } from '../../../src/contract/events/event.ts';
import type { EventDraft } from '../../../src/core/events/event.ts';
import { createHttpServer } from '../../../src/http/server/server.ts';
import type { Fixture } from './fixture.ts';
import { MEMORY_PROFILE, responseTo, send, startFixture } from './fixture.ts';
import { until } from './live-fixture.ts';

let f: Fixture;
beforeAll(async () => {
  f = await startFixture({ limits: { heartbeatMs: 100, subscriberBytes: 200_000, streamsPerKey: 300 } });
});
afterAll(() => f.close());

interface Received {
  readonly id: number;
  readonly event: string;
  readonly data: CloudEvent;
}

function parse(text: string): Received[] {
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
      return {
        id: Number(field('id')),
        event: field('event'),
        data: CloudEvent.parse(JSON.parse(field('data'))),
      };
    });
}

async function follow(path: string, headers: Record<string, string> = {}, target = f.target) {
  const outgoing = send(target, 'GET', path, { headers: { accept: 'text/event-stream', ...headers } });
  const response = await responseTo(outgoing);
  let text = '';
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  response.on('error', () => {});
  return {
    response,
    get text() {
      return text;
    },
    /** Whole events: the last block may still be on its way. */
    events: () => parse(text.slice(0, text.lastIndexOf('\n\n') + 2)),
    stop: () => outgoing.destroy(),
  };
}

let drafts = 0;
function draft(workspaceId = 'default', note = ''): EventDraft {
  drafts += 1;
  return {
    id: `evt_${drafts}`,
    at: Date.now(),
    type: 'credits.granted',
    workspaceId,
    subject: `workspace:${workspaceId}:${drafts}`,
    subjectSeq: 1,
    sandboxUid: null,
    sandboxId: null,
    generation: null,
    state: null,
    previousState: null,
    actor: 'adm',
    consumer: {},
    details: { note },
  };
}

const append = (count: number, workspaceId?: string, note?: string) =>
  f.store.transaction('test', (tx) =>
    tx.events.append(Array.from({ length: count }, () => draft(workspaceId, note))),
  );

test('pages: in order, from a number on, by sandbox and type', async () => {
  const id = await f.create();
  await f.call('DELETE', `/v1/sandboxes/${id}`);
  const all = EventPage.parse((await f.call('GET', `/v1/sandboxes/${id}/events`)).json);
  expect(all.items.map(({ type }) => type)).toEqual([
    'sandbox.requested',
    'sandbox.provisioning',
    'sandbox.ready',
    'sandbox.destroying',
    'sandbox.destroyed',
  ]);
  const first = EventPage.parse((await f.call('GET', `/v1/events?sandbox_id=${id}&limit=2`)).json);
  expect(first.items).toEqual(all.items.slice(0, 2));
  const second = await f.call('GET', `/v1/events?sandbox_id=${id}&limit=2&cursor=${first.next_cursor}`);
  expect(second.json.items).toEqual(all.items.slice(2, 4));
  const ready = await f.call('GET', `/v1/events?sandbox_id=${id}&type=sandbox.ready,sandbox.destroyed`);
  expect(ready.json.items).toHaveLength(2);
  expect((await f.call('GET', '/v1/events?type=no.such')).json).toMatchObject({ status: 400 });
  expect((await f.call('GET', '/v1/sandboxes/nope/events')).json).toMatchObject({ status: 404 });
});

describe('live', () => {
  test('live events come as they are committed, only the wanted ones', async () => {
    const all = await follow('/v1/events');
    const typed = await follow('/v1/events?type=sandbox.ready');
    const id = await f.create();
    const ofOne = await follow(`/v1/sandboxes/${id}/events`);
    await f.call('DELETE', `/v1/sandboxes/${id}`);
    await until(() => all.events().at(-1)?.event === 'sandbox.destroyed', 'the last event');
    const seen = all.events();
    expect(seen.map(({ event }) => event)).toEqual([
      'sandbox.requested',
      'sandbox.provisioning',
      'sandbox.ready',
      'sandbox.destroying',
      'sandbox.destroyed',
    ]);
    for (const { id: number, event, data } of seen)
      expect([data.data.seq, data.type]).toEqual([number, event]);
    await until(() => ofOne.events().length === 2, 'the events of one');
    await until(() => typed.events().length > 0, 'the event of that type');
    expect(typed.events().map(({ event }) => event)).toEqual(['sandbox.ready']);
    await until(() => /^: /m.test(all.text), 'a heartbeat');
    for (const stream of [all, typed, ofOne]) stream.stop();
  });

  test('a reader that comes back with its last id misses nothing and sees nothing twice', async () => {
    const start = (await append(1)).at(-1)?.seq as number;
    let writing = true;
    const writer = (async () => {
      while (writing) {
        await append(1 + Math.floor(Math.random() * 40));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    const seen: number[] = [];
    let last = start;
    for (let round = 0; round < 15; round += 1) {
      const headers = round % 2 === 0 ? { 'last-event-id': String(last) } : {};
      const stream = await follow(round % 2 === 0 ? '/v1/events' : `/v1/events?after=${last}`, headers);
      await until(() => stream.events().length > 20, 'some events');
      stream.stop();
      const ids = stream.events().map(({ id }) => id);
      seen.push(...ids);
      last = ids.at(-1) as number;
    }
    writing = false;
    await writer;
    const rest = await follow('/v1/events', { 'last-event-id': String(last) });
    const end = (await append(1)).at(-1)?.seq as number;
    await until(() => rest.events().at(-1)?.id === end, 'the end');
    rest.stop();
    seen.push(...rest.events().map(({ id }) => id));
    expect(seen).toEqual(Array.from({ length: end - start }, (_, n) => start + 1 + n));
  });

  test('an id from another log starts at the end instead of waiting for ever', async () => {
    const stream = await follow('/v1/events', { 'last-event-id': '999999999' });
    await append(1);
    await until(() => stream.events().length === 1, 'the next event');
    stream.stop();
    const bad = await f.call('GET', '/v1/events', {
      headers: { accept: 'text/event-stream', 'last-event-id': 'x' },
    });
    expect(bad.json).toMatchObject({ status: 400, field: 'Last-Event-ID' });
  });

  test('events of another workspace are not seen', async () => {
    await f.store.transaction('test', async (tx) => {
      await tx.tenancy.insertWorkspace({ id: 'other', orgId: 'default', name: 'Other', createdAt: 1 });
    });
    const request = { name: 'other', scopes: ['read'], workspace_id: 'other' };
    const { secret } = (await f.call('POST', '/v1/keys', { json: request })).json;
    const headers = { authorization: `Bearer ${secret}` };
    const theirs = await follow('/v1/events?after=0', headers);
    await append(3);
    await append(2, 'other');
    await until(() => theirs.events().length === 2, 'their events');
    expect(theirs.events().every(({ data }) => data.data.workspace_id === 'other')).toBe(true);
    const page = await f.call('GET', '/v1/events', { headers });
    expect(page.json.items).toHaveLength(2);
    const id = await f.create();
    expect((await f.call('GET', `/v1/sandboxes/${id}/events`, { headers })).status).toBe(404);
    expect((await f.call('GET', `/v1/sandboxes/${id}`, { headers })).status).toBe(404);
    theirs.stop();
  });

  test('a reader that does not read is dropped, and others do not notice', async () => {
    const socket = connect(f.target.socketPath as string);
    socket.write('GET /v1/events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    const other = await follow('/v1/events');
    let last = 0;
    for (let n = 0; n < 40; n += 1) {
      last = (await append(50, 'default', 'x'.repeat(300))).at(-1)?.seq as number;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await until(() => other.events().at(-1)?.id === last, 'the other one has it all');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await closed;
    expect(other.events()).toHaveLength(2000);
    other.stop();
  });

  test('live events reach many readers', async () => {
    const streams = await Promise.all(Array.from({ length: 200 }, () => follow('/v1/events')));
    const first = (await append(1)).at(-1)?.seq as number;
    for (let n = 0; n < 20; n += 1) await append(10);
    const last = (await append(1)).at(-1)?.seq as number;
    await until(() => streams.every((stream) => stream.events().at(-1)?.id === last), 'all have it all');
    const expected = Array.from({ length: last - first + 1 }, (_, n) => first + n);
    for (const stream of streams) expect(stream.events().map(({ id }) => id)).toEqual(expected);
    const refused = await Promise.all(Array.from({ length: 120 }, () => follow('/v1/events')));
    const limited = refused.filter(({ response }) => response.statusCode === 429);
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]?.response.headers['retry-after']).toBe('1');
    for (const stream of [...streams, ...refused]) stream.stop();
    await until(
      async () => (await f.call('GET', '/metrics')).text.includes('sandboxer_http_open_streams 0'),
      'all are released',
    );
  });
});

test('a stopping server ends its streams and finishes what is in flight', async () => {
  const app = await createHttpServer(f.options);
  const socketPath = `${f.target.socketPath}-2`;
  await app.listen({ path: socketPath });
  const target = { socketPath };
  const stream = await follow('/v1/events', {}, target);
  const ended = new Promise((resolve) => stream.response.once('close', resolve));
  const created = await f.call('POST', '/v1/sandboxes', { json: { profile: MEMORY_PROFILE.id } });
  const waiting = send(
    target,
    'GET',
    `/v1/sandboxes/${created.json.sandbox_id}/wait?for=destroyed&timeout=60s`,
  );
  const arrived = once(app.server, 'request');
  const answer = responseTo(waiting);
  await arrived;
  const startedAt = performance.now();
  await app.close();
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  await ended;
  expect(stream.text).toContain(': closing SBX_UNAVAILABLE');
  expect((await answer).statusCode).toBe(503);
});
