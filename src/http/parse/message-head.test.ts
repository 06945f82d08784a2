import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { requireClearHead } from './message-head.ts';

const head = (rawHeaders: string[], httpVersionMajor = 1) =>
  requireClearHead({ rawHeaders, httpVersionMajor } as IncomingMessage);

it('requireClearHead: a repeated header of which one value decides is refused', () => {
  for (const name of ['Host', 'AUTHORIZATION', 'content-type', 'Sandboxer-Workspace', 'Idempotency-Key']) {
    expect(() => head(['accept', '*/*', name, 'a', name.toLowerCase(), 'b'])).toThrow(
      expect.objectContaining({ code: 'SBX_INVALID_REQUEST', extras: { field: name.toLowerCase() } }),
    );
    head([name, 'a']);
  }
});

it('requireClearHead: headers that are lists may come as often as they like', () => {
  head([
    'host',
    'x',
    'accept',
    'a',
    'accept',
    'b',
    'cookie',
    'a=1',
    'cookie',
    'b=2',
    'x-forwarded-for',
    '::1',
  ]);
});

it('requireClearHead: a request line without a version is refused', () => {
  expect(() => head(['host', 'x'], 0)).toThrow('SBX_INVALID_REQUEST');
});
