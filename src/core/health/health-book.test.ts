import { describe, expect, it } from 'vitest';
import type { AttemptOutcome } from '../lifecycle/attempt.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { outcomeOfError } from './attempt-outcome.ts';
import type { AttemptKey } from './health-book.ts';
import { HealthBook } from './health-book.ts';

const header = { id: 'ext.a', capabilities: { latency_class: 'standard' } } as ExtensionHeader;
const recipe = { image: 'host', isolation: 'container' } as const;

interface End {
  readonly at: number;
  readonly tookMs: number;
}

function end(book: HealthBook, key: AttemptKey, outcome: AttemptOutcome, { at, tookMs }: End): void {
  book.ended(key, book.judge(key.attemptId, key.extensionId, outcome, at), tookMs);
}

class Story {
  readonly book = new HealthBook();
  #n = 0;

  attempt(outcome: AttemptOutcome, at: number, tookMs = 100): void {
    this.#n += 1;
    const key = {
      attemptId: `a${this.#n}`,
      extensionId: header.id,
      hostId: null,
      recipeClass: 'host/container',
    };
    this.book.started(key, at);
    end(this.book, key, outcome, { at: at + tookMs, tookMs });
  }

  standing(at: number) {
    return this.book.standing(header, 'healthy', recipe, at);
  }
}

describe('the health book', () => {
  it('the health book returns a prior until an attempt was made', () => {
    const { standing } = { standing: new Story().standing(0) };
    expect(standing).toMatchObject({
      breaker: 'closed',
      measured: false,
      wait_ms: 2000,
      success: 0.98,
      samples: 0,
    });
  });

  it('the health book raises its estimate at once for a slow answer, and lowers it little by little', () => {
    const story = new Story();
    for (let n = 0; n < 5; n += 1) story.attempt('ready', n * 1000, 100);
    expect(story.standing(6000).wait_ms).toBe(100);
    story.attempt('ready', 7000, 5000);
    expect(story.standing(13_000).wait_ms).toBe(5000);
    story.attempt('ready', 14_000, 100);
    const after = story.standing(15_000).wait_ms;
    expect(after).toBeLessThan(5000);
    expect(after).toBeGreaterThan(3000);
  });

  it('the health book expects a burst to be slower than a single create', () => {
    const { book } = new Story();
    const keys = Array.from({ length: 30 }, (_, n) => ({
      attemptId: `b${n}`,
      extensionId: header.id,
      hostId: null,
      recipeClass: 'host/container',
    }));
    for (const key of keys) book.started(key, 0);
    for (const [n, key] of keys.entries()) end(book, key, 'ready', { tookMs: 100 + n * 50, at: 2000 });
    expect(book.standing(header, 'healthy', recipe, 3000).wait_ms).toBe(100);
    for (const key of keys.slice(0, 20)) book.started({ ...key, attemptId: `${key.attemptId}x` }, 3000);
    expect(book.standing(header, 'healthy', recipe, 3000).wait_ms).toBeGreaterThan(1000);
  });

  it('the breaker opens after five failures in a row, tries once after a pause, and pauses longer each time', () => {
    const story = new Story();
    for (let n = 0; n < 4; n += 1) story.attempt('backend', n);
    expect(story.standing(200).breaker).toBe('closed');
    story.attempt('backend', 300, 0);
    expect(story.standing(300).breaker).toBe('open');
    expect(story.standing(15_299).breaker).toBe('open');
    expect(story.standing(15_300).breaker).toBe('half_open');
    const trial = { attemptId: 'trial', extensionId: header.id, hostId: null, recipeClass: 'host/container' };
    story.book.started(trial, 15_300);
    expect(story.standing(15_301).breaker).toBe('open');
    end(story.book, trial, 'backend', { tookMs: 100, at: 15_400 });
    expect(story.standing(30_401).breaker).toBe('open');
    expect(story.standing(45_400).breaker).toBe('half_open');
    story.attempt('ready', 45_400);
    expect(story.standing(45_600).breaker).toBe('closed');
  });

  it('the breaker forgets a trial that never reported, and admits another', () => {
    const story = new Story();
    for (let n = 0; n < 5; n += 1) story.attempt('backend', 0, 0);
    story.book.started(
      { attemptId: 'lost', extensionId: header.id, hostId: null, recipeClass: 'host/container' },
      20_000,
    );
    expect(story.standing(20_001).breaker).toBe('open');
    expect(story.standing(20_000 + 120_000).breaker).toBe('half_open');
  });

  it('the breaker admits one trial, and no other before its outcome is known', () => {
    const story = new Story();
    const place = { extensionId: header.id, hostId: null };
    for (let n = 0; n < 5; n += 1) story.attempt('backend', 0, 0);
    expect(story.book.awaitsTrial(place, 15_003)).toBe(false);
    expect(story.book.awaitsTrial(place, 15_004)).toBe(true);
    story.book.takeTrial(place, 15_004);
    expect(story.standing(15_005).breaker).toBe('open');
    expect(story.book.awaitsTrial(place, 15_005)).toBe(false);
  });

  it('a canary that works closes the breaker, one that fails keeps it open for longer', () => {
    const story = new Story();
    const place = { extensionId: header.id, hostId: 'h1' };
    const there = { extensionId: header.id, hostId: 'h1', recipeClass: 'host/container' };
    for (let n = 0; n < 5; n += 1) {
      story.book.started({ ...there, attemptId: `c${n}` }, 0);
      end(story.book, { ...there, attemptId: `c${n}` }, 'backend', { tookMs: 10, at: 0 });
    }
    const breaker = (now: number) =>
      story.book.standingOn('h1', header, { probe: 'healthy', recipe, now })?.breaker;
    story.book.takeTrial(place, 15_000);
    story.book.probed(place, false, 15_100);
    expect(breaker(30_500)).toBe('open');
    expect(breaker(45_100)).toBe('half_open');
    story.book.takeTrial(place, 45_100);
    story.book.probed(place, true, 45_200);
    expect(breaker(45_200)).toBe('closed');
    expect(story.standing(45_200)).toMatchObject({ breaker: 'closed', samples: 5 });
  });

  it('the health book never counts lack of capacity or a server fault as a failure', () => {
    const story = new Story();
    for (let n = 0; n < 50; n += 1) {
      story.attempt('capacity', n);
      for (const fault of ['caller', 'server'] as const) story.attempt(fault, n);
    }
    expect(story.standing(1000)).toMatchObject({ breaker: 'closed', success: 0.98, in_flight: 0 });
    const platform = { providerKeyId: null, hostId: null };
    expect(outcomeOfError('SBX_BACKEND_QUOTA', platform)).toBe('capacity');
    expect(outcomeOfError('SBX_SECRET_UNRESOLVED', platform)).toBe('caller');
    expect(outcomeOfError('SBX_TIMEOUT', platform)).toBe('backend');
  });

  it('the health book keeps a refused key apart from the health of the backend', () => {
    const story = new Story();
    story.attempt('key', 0, 0);
    expect(story.standing(1)).toMatchObject({ breaker: 'closed', key_refused: true, success: 0.98 });
    expect(story.standing(60_000).key_refused).toBe(false);
  });

  it('the health book does not count an attempt as load for ever', () => {
    const story = new Story();
    story.book.started({ attemptId: 'x', extensionId: header.id, hostId: null, recipeClass: 'h' }, 0);
    expect(story.standing(1000).in_flight).toBe(1);
    expect(story.standing(1_000_000).in_flight).toBe(0);
  });

  it('the health book keeps a failing host apart from the others', () => {
    const { book } = new Story();
    const on = (hostId: string, n: number) => ({
      attemptId: `${hostId}${n}`,
      extensionId: header.id,
      hostId,
      recipeClass: 'host/container',
    });
    for (let n = 0; n < 6; n += 1) {
      book.started(on('bad', n), n);
      end(book, on('bad', n), 'backend', { tookMs: 10, at: n });
      book.started(on('good', n), n);
      end(book, on('good', n), 'ready', { tookMs: 50, at: n });
    }
    const there = (hostId: string) => book.standingOn(hostId, header, { probe: 'healthy', recipe, now: 100 });
    expect(there('bad')).toMatchObject({ breaker: 'open', samples: 6 });
    expect(there('good')).toMatchObject({ breaker: 'closed', wait_ms: 50, samples: 6 });
    expect(there('new')).toBeNull();
    expect(book.standing(header, 'healthy', recipe, 100)).toMatchObject({ breaker: 'closed', samples: 12 });
  });

  it('the health book learns from an outrun attempt only that it would have taken longer', () => {
    const story = new Story();
    for (let n = 0; n < 19; n += 1) story.attempt('ready', n * 1000, 100);
    expect(story.standing(30_000).p95_ms).toBeUndefined();
    story.attempt('outrun', 30_000, 2000);
    expect(story.standing(40_000)).toMatchObject({ p50_ms: 100, p95_ms: 100, tail_ms: 1900, samples: 19 });
  });

  it('a backend is strained while it has no room or its breaker is open', () => {
    const story = new Story();
    expect(story.book.isStrained(header.id, 0)).toBe(false);
    story.attempt('capacity', 0, 0);
    expect(story.book.isStrained(header.id, 1000)).toBe(true);
    expect(story.book.isStrained(header.id, 60_000)).toBe(false);
  });

  it('the health book weighs few samples lightly and lets old ones fade', () => {
    const story = new Story();
    story.attempt('backend', 0, 0);
    expect(story.standing(1).success).toBeGreaterThan(0.85);
    for (let n = 0; n < 3; n += 1) story.attempt('backend', 0, 0);
    expect(story.standing(1).success).toBeLessThan(0.75);
    expect(story.standing(6_000_000).success).toBeGreaterThan(0.97);
  });

  it('a caller fault ends a trial without a verdict: the next create may try the backend', () => {
    const story = new Story();
    for (let n = 0; n < 5; n += 1) story.attempt('backend', n, 0);
    expect(story.standing(15_004).breaker).toBe('half_open');
    story.attempt('caller', 15_004, 10);
    expect(story.standing(15_020).breaker).toBe('half_open');
  });

  it('a host fault counts against the host, not against the backend elsewhere', () => {
    const { book } = new Story();
    for (let n = 0; n < 6; n += 1) {
      const key = {
        attemptId: `h${n}`,
        extensionId: header.id,
        hostId: 'bad',
        recipeClass: 'host/container',
      };
      book.started(key, n);
      end(book, key, 'host', { tookMs: 10, at: n });
    }
    expect(book.standingOn('bad', header, { probe: 'healthy', recipe, now: 100 })?.breaker).toBe('open');
    expect(book.standing(header, 'healthy', recipe, 100)).toMatchObject({ breaker: 'closed', success: 0.98 });
  });

  it('two judgements of the same millisecond get two times, in the order in which they were made', () => {
    const { book } = new Story();
    const times = [5, 5, 4, 9].map((now) => book.judge('a', header.id, 'ready', now).at);
    expect(times).toEqual([5, 6, 7, 9]);
  });
});
