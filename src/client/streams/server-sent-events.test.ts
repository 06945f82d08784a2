import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SandboxerClient } from '../sandboxer-client.ts';
import { ServerSentEventDecoder } from './server-sent-events.ts';

describe('ServerSentEventDecoder', () => {
  it('ServerSentEventDecoder gives whole events however the stream is cut', () => {
    const stream = Buffer.from(
      ': hi\n\nid: 1\nevent: x\ndata: {"é":\ndata:1}\n\r\nid:2\r\ndata: b\r\n\r\ndata\n\n',
    );
    for (const size of [1, 2, 3, 7, 1000]) {
      const decoder = new ServerSentEventDecoder();
      const events = [];
      for (let at = 0; at < stream.length; at += size)
        events.push(...decoder.decode(stream.subarray(at, at + size)));
      expect(events).toEqual([
        { id: '1', event: 'x', data: '{"é":\n1}' },
        { id: '2', event: 'message', data: 'b' },
        { id: '2', event: 'message', data: '' },
      ]);
    }
  });
});

describe('events.follow', () => {
  it('events.follow continues where the connection broke', async () => {
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      const last = request.headers['last-event-id'] as string | undefined;
      asked.push(last);
      const next = Number(last ?? 0) + 1;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`id: ${next}\ndata: {"n":${next}}\n\n`, () => response.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = new SandboxerClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const seen: unknown[] = [];
    for await (const event of client.events.follow()) {
      seen.push(event);
      if (seen.length === 3) break;
    }
    server.close();
    expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(asked).toEqual([undefined, '1', '2']);
  });
});
