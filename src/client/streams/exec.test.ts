import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { SandboxerClient } from '../sandboxer-client.ts';
import type { ExecChunk } from './frames.ts';
import { encodeFrame, FRAME_TYPE } from './frames.ts';

const EXIT = { code: 3, signal: null, timed_out: false, out_of_memory: false };
const STARTED = encodeFrame(FRAME_TYPE.started, Buffer.from('{"type":"started","process_id":"p1"}'));
const ENDED = encodeFrame(
  FRAME_TYPE.exit,
  Buffer.from(JSON.stringify({ type: 'exit', exit: EXIT, duration_ms: 5 })),
);

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function listen(server: Server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new SandboxerClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  open.push(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return client;
}

function out(type: number, text: string): Buffer {
  return encodeFrame(type, Buffer.from(text));
}

describe('exec', () => {
  it('exec gives the output and the exit', async () => {
    const client = await listen(
      createServer((_request, response) => {
        response.write(STARTED);
        response.write(out(FRAME_TYPE.stdout, 'hello '));
        response.write(out(FRAME_TYPE.stderr, 'oops'));
        response.end(Buffer.concat([out(FRAME_TYPE.stdout, 'world'), ENDED]));
      }),
    );
    const output = await client.exec('a', { command: ['true'] }).result();
    expect(output).toMatchObject({
      processId: 'p1',
      stdout: 'hello world',
      stderr: 'oops',
      exit: EXIT,
      durationMs: 5,
    });
    const cut = await client.exec('a', { command: ['true'] }).result({ keepBytes: 5 });
    expect([cut.stdout, cut.stderr, cut.truncated]).toEqual(['hello', 'oops', true]);
  });

  it('exec reports a stream that ends before the program', async () => {
    const client = await listen(createServer((_request, response) => response.end(STARTED)));
    await expect(client.exec('a', { command: 'x' }).result()).rejects.toMatchObject({ failure: 'lost' });
  });

  it('exec kills by the id that the stream sent, and closes the connection when its reader stops', async () => {
    const seen: string[] = [];
    const closed = Promise.withResolvers<void>();
    const client = await listen(
      createServer((request, response) => {
        seen.push(`${request.method} ${request.url}`);
        if (request.url?.endsWith('/signal')) {
          response.writeHead(204).end();
          return;
        }
        response.on('close', closed.resolve);
        response.write(Buffer.concat([STARTED, out(FRAME_TYPE.stdout, 'x')]));
      }),
    );
    const handle = client.exec('a', { command: 'sleep 9' });
    await handle.kill('SIGINT');
    expect(seen).toContain('POST /v1/sandboxes/a/processes/p1/signal');
    for await (const chunk of handle) if (chunk.type === 'stdout') break;
    await closed.promise;
  });

  it('exec leaves no unhandled rejection when an unread handle fails', async () => {
    const client = await listen(createServer((_request, response) => response.writeHead(404).end()));
    client.exec('a', { command: 'x' });
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
});

describe('interactive exec', () => {
  it('interactive exec carries input, resize, signals and output over a real WebSocket', async () => {
    const server = createServer();
    const sockets = new WebSocketServer({ server, perMessageDeflate: false });
    const received: [number, string][] = [];
    let first = '';
    sockets.on('connection', (socket, request) => {
      expect(request.url).toBe('/v1/sandboxes/a/exec');
      socket.on('message', (data: Buffer, binary) => {
        if (!binary) {
          first = data.toString();
          socket.ping();
          socket.send(STARTED);
          return;
        }
        received.push([data[0] as number, data.subarray(5).toString()]);
        if (data[0] === FRAME_TYPE.stdin) socket.send(out(FRAME_TYPE.terminal, 'echo'));
        if (data[0] === FRAME_TYPE.stdinEnd) {
          socket.send(ENDED);
          socket.close(1000);
        }
      });
    });
    const client = await listen(server);
    const exec = await client.interactive('a', { command: ['cat'], tty: { cols: 80, rows: 24 } });
    await exec.resize({ cols: 100, rows: 30 });
    await exec.kill('SIGINT');
    await exec.write(Buffer.from('héllo'));
    const chunks: ExecChunk[] = [];
    for await (const chunk of exec) {
      chunks.push(chunk);
      if (chunk.type === 'terminal') await exec.endInput();
    }
    expect(JSON.parse(first)).toEqual({ command: ['cat'], tty: { cols: 80, rows: 24 } });
    expect(received).toEqual([
      [FRAME_TYPE.resize, '{"cols":100,"rows":30}'],
      [FRAME_TYPE.signal, '{"signal":"SIGINT"}'],
      [FRAME_TYPE.stdin, 'héllo'],
      [FRAME_TYPE.stdinEnd, ''],
    ]);
    expect(chunks.map((chunk) => chunk.type)).toEqual(['started', 'terminal', 'exit']);
  });

  it('interactive exec turns a refused handshake into the problem', async () => {
    const problem = { code: 'SBX_NOT_FOUND', status: 404, detail: 'none', remedy: '', retryable: false };
    const server = createServer();
    server.on('upgrade', (_request, socket) => {
      const body = JSON.stringify(problem);
      socket.end(
        `HTTP/1.1 404 Not Found\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
    });
    const client = await listen(server);
    await expect(client.interactive('a', { command: 'x' })).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
  });

  it('interactive exec tunnels bytes to a port, both ways, in order', async () => {
    const server = createServer();
    const sockets = new WebSocketServer({ server, perMessageDeflate: false });
    sockets.on('connection', (socket, request) => {
      expect(request.url).toBe('/v1/sandboxes/a/ports/80/connect');
      socket.on('message', (data) => socket.send(data));
    });
    const client = await listen(server);
    const stream = await client.ports.connect('a', 80);
    const sent = Buffer.alloc(300_000, 'abc');
    stream.write(sent);
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of stream) {
      parts.push(part);
      size += part.length;
      if (size === sent.length) break;
    }
    expect(Buffer.concat(parts).equals(sent)).toBe(true);
  });
});
