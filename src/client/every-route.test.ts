import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SandboxerClient } from './sandboxer-client.ts';

/** Operations that a program does not call through a client, or calls in another way. */
const NOT_FOR_CLIENTS = new Set([
  // For probes, scrapers and browsers.
  'getHealth',
  'checkHealth',
  'getReadiness',
  'checkReadiness',
  'getMetrics',
  'getOpenApi',
  'getApiPage',
  // `files.stat` has a body; this one is for programs that want headers alone.
  'statFile',
]);

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId?: string }>>>>;
}

const document = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/reference/openapi.json'), 'utf8'),
) as OpenApi;

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { operationId }]) =>
    operationId === undefined
      ? []
      : [
          {
            operationId,
            method: method.toUpperCase(),
            pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
            fixed: !path.includes('{'),
          },
        ],
  ),
);

const called = new Set<string>();
function record({ method, url = '' }: IncomingMessage): void {
  const path = url.split('?')[0] as string;
  const fitting = operations.filter((one) => one.method === method && one.pattern.test(path));
  // `/v1/snapshots/import` is that, and no snapshot called "import".
  const exact = fitting.find(({ fixed }) => fixed) ?? fitting[0];
  called.add(exact?.operationId ?? `${method} ${path}`);
}

const server = createServer((request, response) => {
  record(request);
  request.resume().on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end('{"items":[],"next_cursor":null,"upload_id":"u","secret":"s"}');
  });
});
server.on('upgrade', (request, socket) => {
  record(request);
  socket.destroy();
});
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

type Method = (...args: readonly unknown[]) => unknown;

/** Reads the answer of a method until a request was sent. */
async function consume(answer: unknown): Promise<void> {
  const value = (await answer) as Record<string | symbol, unknown> | null;
  if (value === null || typeof value !== 'object') return;
  if (typeof value.page === 'function') await value.page();
  else if (typeof value.result === 'function') await (value.result as Method)();
  else if (Symbol.asyncIterator in value) {
    const iterator = (value as unknown as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.return?.();
  }
}

function namesOf(resource: object): string[] {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(resource));
  return names.filter((name) => !['constructor', 'close', 'request', 'address'].includes(name));
}

/** Calls on a client of its own, so that a call which hangs blocks no other. */
async function call(part: string | null, name: string, args: readonly unknown[]): Promise<void> {
  const client = new SandboxerClient({ url, key: 'k', maxRetries: 0 });
  const resource = (part === null ? client : client[part as keyof SandboxerClient]) as object;
  const method = (resource as Record<string, unknown>)[name] as Method;
  try {
    await consume(method.apply(resource, [...args]));
  } catch {
    // Most arguments do not fit most methods: only the request that was sent counts.
  } finally {
    client.close();
  }
}

const HERE = import.meta.dirname;
const over = new AbortController();
/** Options that end with the test; as a body or a filter they are as good as empty ones. */
const OPTIONS = { signal: over.signal };
const ARGUMENTS: readonly (readonly unknown[])[] = [
  [OPTIONS, OPTIONS],
  ['one', OPTIONS, OPTIONS],
  ['one', null, OPTIONS],
  ['one', 80, OPTIONS],
  ['one', 'two', OPTIONS, OPTIONS],
  ['one', 'two', 'three', OPTIONS],
  ['one', HERE, 'two', OPTIONS],
  [HERE, OPTIONS],
];

it('the client has a method for every route, and calls only routes that exist', async () => {
  const sample = new SandboxerClient({ url });
  const parts = Object.entries(sample).filter(([, part]) => typeof part === 'object' && part !== null);
  const methods = [
    ...namesOf(sample).map((name) => [null, name] as const),
    ...parts.flatMap(([part, resource]) => namesOf(resource).map((name) => [part, name] as const)),
  ];
  const known = new Set(operations.map(({ operationId }) => operationId));
  const missing = () => [...known].filter((one) => !called.has(one) && !NOT_FOR_CLIENTS.has(one));
  const calls = ARGUMENTS.flatMap((args) => methods.map(([part, name]) => call(part, name, args)));
  // Streams go on for ever, and a call with an unknown answer may wait: only the requests count.
  for (let n = 0; n < 200 && missing().length > 0; n += 1) await sleep(100);
  over.abort();
  await Promise.race([Promise.all(calls), sleep(500)]);
  expect(missing()).toEqual([]);
  expect([...called].filter((one) => !known.has(one))).toEqual([]);
}, 60_000);
