import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { ERRORS } from '../../contract/errors/errors.ts';
import { Fault } from '../../contract/errors/fault.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { outcomeOfError } from './attempt-outcome.ts';
import { HealthBook } from './health-book.ts';

const header = { id: 'ext.a', capabilities: { latency_class: 'standard' } } as ExtensionHeader;
const recipe = { image: 'host', isolation: 'container' } as const;
const codes = Object.keys(ERRORS) as ErrorCode[];

/** Faults that one workspace can cause by its requests alone. */
const TENANTS_OWN: readonly Fault[] = ['caller', 'key', 'capacity'];
/** A vendor key that the workspace stored. */
const OWN_KEY = { providerKeyId: 'key-of-workspace', hostId: null };

interface Story {
  readonly code: ErrorCode | 'ready';
  readonly tookMs: number;
  readonly hostId: string | null;
}

function tell(book: HealthBook, stories: readonly Story[], from: number, name: string): number {
  let now = from;
  for (const [n, { code, tookMs, hostId }] of stories.entries()) {
    const key = { attemptId: `${name}${n}`, extensionId: header.id, hostId, recipeClass: 'host/container' };
    book.started(key, now);
    now += tookMs;
    const outcome = code === 'ready' ? 'ready' : outcomeOfError(code, OWN_KEY);
    book.ended(key, book.judge(key.attemptId, header.id, outcome, now), tookMs);
  }
  return now;
}

const storiesOf = (allowed: readonly (ErrorCode | 'ready')[]) =>
  fc.array(
    fc.record({
      code: fc.constantFrom(...allowed),
      tookMs: fc.integer({ min: 0, max: 20_000 }),
      hostId: fc.constantFrom(null, 'h1', 'h2'),
    }),
    { maxLength: 40 },
  );

describe('fault of a failed attempt', () => {
  it('every code of the catalogue names one fault', () => {
    for (const code of codes) expect(Fault.options, code).toContain(ERRORS[code].fault);
  });

  it('a code with a status of 4xx is never the fault of a backend, host or server but for configuration', () => {
    for (const code of codes.filter((name) => ERRORS[name].status < 500))
      expect(['caller', 'capacity', ...(code === 'SBX_CONFIG_INVALID' ? ['server'] : [])], code).toContain(
        ERRORS[code].fault,
      );
  });

  it('a code that no catalogue knows counts as the fault of the backend', () => {
    expect(outcomeOfError('SBX_OF_LATER', { providerKeyId: null, hostId: null })).toBe('backend');
  });

  it('a host that refuses our key: its own fault, and the backend goes on with other hosts', () => {
    const on = (hostId: string | null) => outcomeOfError('SBX_BACKEND_AUTH', { providerKeyId: null, hostId });
    expect([on('h1'), on('local'), on(null)]).toEqual(['host', 'key', 'key']);
    const book = new HealthBook();
    const key = { attemptId: 'a', extensionId: header.id, hostId: 'h1', recipeClass: 'host/container' };
    book.started(key, 0);
    book.ended(key, book.judge(key.attemptId, header.id, on('h1'), 10), 10);
    expect(book.standing(header, 'healthy', recipe, 20)).toMatchObject({ key_refused: false, samples: 0 });
    expect(book.standingOn('h1', header, { probe: 'healthy', recipe, now: 20 })).toMatchObject({
      samples: 1,
    });
  });

  it('no storm of faults that a tenant can cause changes the standing that other tenants get', () => {
    const own = codes.filter((code) => TENANTS_OWN.includes(ERRORS[code].fault));
    fc.assert(
      fc.property(storiesOf([...codes, 'ready']), storiesOf(own), (before, storm) => {
        const book = new HealthBook();
        const calm = new HealthBook();
        const from = tell(book, before, 0, 'b');
        tell(calm, before, 0, 'b');
        const now = tell(book, storm, from, 's') + 1;
        for (const hostId of ['h1', 'h2'])
          expect(book.standingOn(hostId, header, { probe: 'healthy', recipe, now })).toEqual(
            calm.standingOn(hostId, header, { probe: 'healthy', recipe, now }),
          );
        expect(book.standing(header, 'healthy', recipe, now)).toEqual(
          calm.standing(header, 'healthy', recipe, now),
        );
        expect(book.isStrained(header.id, now)).toBe(calm.isStrained(header.id, now));
      }),
      { numRuns: 300 },
    );
  });
});
