import { expect, test, vi } from 'vitest';
import type { EventDraft, EventRecord } from '../../core/events/event.ts';
import { silentLog } from '../../core/ports/log.ts';
import { memoryDatabase } from '../../store/memory/memory-database.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { EventFeed } from './event-feed.ts';

function draft(workspaceId: string): EventDraft {
  return {
    id: 'evt',
    at: 0,
    type: 'credits.granted',
    workspaceId,
    subject: 's',
    subjectSeq: 1,
    sandboxUid: null,
    sandboxId: null,
    generation: null,
    state: null,
    previousState: null,
    actor: 'adm',
    consumer: {},
    details: {},
  };
}

function setUp() {
  const store = new MemoryStore(memoryDatabase());
  const encode = vi.fn((event: EventRecord) => Buffer.from(`${event.seq} `));
  const feed = new EventFeed(store, silentLog, encode);
  const append = (...workspaces: string[]) =>
    store.transaction('test', (tx) => tx.events.append(workspaces.map(draft)));
  return { feed, encode, append };
}

const quiet = () => new Promise((resolve) => setTimeout(resolve, 20));

function reader(workspaceId: string | null) {
  const taken: Uint8Array[] = [];
  return {
    filter: { workspaceId },
    taken,
    take: (bytes: Uint8Array) => void taken.push(bytes),
    text: () => Buffer.concat(taken).toString().trim(),
  };
}

test('each event is encoded once, and equal filters share the same bytes', async () => {
  const { feed, encode, append } = setUp();
  const [one, two, other] = [reader('a'), reader('a'), reader('b')];
  for (const each of [one, two, other]) expect((await feed.join()).follow(each, 0)).toBe(true);
  await append('a', 'b', 'a');
  await quiet();
  expect([one.text(), two.text(), other.text()]).toEqual(['1 3', '1 3', '2']);
  expect(encode).toHaveBeenCalledTimes(3);
  expect(one.taken[0]).toBe(two.taken[0]);
});

test('a reader behind the feed has to catch up; a reader ahead gets no event twice', async () => {
  const { feed, append } = setUp();
  await append('a', 'a');
  const late = await feed.join();
  expect(late.follow(reader('a'), 1)).toBe(false);
  const ahead = reader('a');
  expect(late.follow(ahead, 4)).toBe(true);
  await append('a', 'a', 'a');
  await quiet();
  expect(ahead.text()).toBe('5');
});

test('the feed rests without readers, and starts at the end again', async () => {
  const { feed, encode, append } = setUp();
  const first = await feed.join();
  first.follow(reader(null), 0);
  first.leave();
  first.leave();
  await append('a', 'a');
  await quiet();
  expect(encode).not.toHaveBeenCalled();
  expect(feed.followers).toBe(0);
  const again = await feed.join();
  const fresh = reader(null);
  expect(again.follow(fresh, 0)).toBe(false);
  expect(again.follow(fresh, 2)).toBe(true);
  await append('a');
  await quiet();
  expect(fresh.text()).toBe('3');
});

test('an event committed while a reader joins is not lost', async () => {
  const { feed, append } = setUp();
  for (let round = 0; round < 50; round += 1) {
    const before = round * 2;
    const [member] = await Promise.all([feed.join(), append('a')]);
    const each = reader('a');
    let cursor = before;
    while (!member.follow(each, cursor)) cursor += 1;
    await append('a');
    await quiet();
    const seen = each.text().split(' ').map(Number);
    expect(seen).toEqual(Array.from({ length: before + 2 - cursor }, (_, n) => cursor + 1 + n));
    member.leave();
  }
});
