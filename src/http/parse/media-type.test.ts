import { expect, test } from 'vitest';
import { preferredType } from './media-type.ts';

const OFFERED = ['application/json', 'text/event-stream', 'application/x-ndjson'] as const;

test.each([
  [undefined, 'application/json'],
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['text/*', 'text/event-stream'],
  ['TEXT/Event-Stream', 'text/event-stream'],
  ['application/json;q=0.1, application/x-ndjson', 'application/x-ndjson'],
  ['image/png, */*;q=0.1', 'application/json'],
  ['text/event-stream, application/json', 'text/event-stream'],
])('%s → %s', (accept, expected) => {
  expect(preferredType(accept, [...OFFERED])).toBe(expected);
});

test.each(['image/png', 'text/event-stream;q=0', ',;'])('%s cannot be had', (accept) => {
  expect(() => preferredType(accept, [...OFFERED])).toThrow('SBX_NOT_ACCEPTABLE');
});
