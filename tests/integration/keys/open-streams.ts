/** What can be open in the name of a key: each of these begins one, and tells how it ended. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import { answerTo, responseTo, send } from '../http/fixture.ts';

export interface World {
  readonly socketPath: string;
  readonly sandbox: string;
  /** A port inside, where a service answers `/stream` with a beginning and no end, and echoes after an upgrade. */
  readonly port: number;
  readonly backgroundProcess: string;
}

/** Of the file `large`: at 64 KiB every 50 ms it takes longer than a test. */
export const LARGE_BYTES = 64 * 1_048_576;

/** Resolves with what was seen of the end. Whatever is not over by itself never resolves. */
export type Open = { readonly over: Promise<string> };

function webSocket(world: World, key: string, path: string): WebSocket {
  return new WebSocket(`ws+unix://${world.socketPath}:/v1/sandboxes/${world.sandbox}${path}`, {
    headers: { authorization: `Bearer ${key}` },
  });
}

function opened(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
}

function firstMessage(socket: WebSocket): Promise<Buffer> {
  return new Promise((resolve) => socket.once('message', (data) => resolve(data as Buffer)));
}

/** The close code, and the control frames that came before. */
function endOfSocket(socket: WebSocket): Promise<string> {
  let text = '';
  socket.on('message', (data) => {
    text += (data as Buffer).toString('latin1');
  });
  return new Promise((resolve) =>
    socket.once('close', (code) =>
      resolve(`${code}${text.includes('SBX_UNAUTHENTICATED') ? ' SBX_UNAUTHENTICATED' : ''}`),
    ),
  );
}

function headers(key: string, more: Record<string, string> = {}): Record<string, string> {
  return { authorization: `Bearer ${key}`, ...more };
}

async function begun(response: IncomingMessage): Promise<Open> {
  let text = '';
  const first = Promise.withResolvers<void>();
  response.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    first.resolve();
  });
  const over = new Promise<string>((resolve) => {
    response.once('close', () =>
      resolve(text.includes('SBX_UNAUTHENTICATED') ? 'SBX_UNAUTHENTICATED' : 'cut'),
    );
  });
  await first.promise;
  return { over };
}

/** A body that is announced and not sent to its end. */
function hangingUpload(world: World, key: string, method: string, path: string, type: string): Open {
  const outgoing = request({
    socketPath: world.socketPath,
    method,
    path,
    agent: false,
    headers: headers(key, { 'content-type': type, 'content-length': '1000000' }),
  });
  outgoing.write(Buffer.alloc(600));
  const over = new Promise<string>((resolve) => {
    outgoing.once('error', () => resolve('cut'));
    outgoing.once('response', (response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
  });
  return { over };
}

async function previewAddress(world: World, key: string, isPublic: boolean): Promise<URL> {
  const path = `/v1/sandboxes/${world.sandbox}/ports`;
  const answer = await answerTo(
    send({ socketPath: world.socketPath }, 'POST', path, {
      json: { port: world.port, public: isPublic },
      headers: headers(key),
    }),
  );
  if (answer.status !== 200) throw new Error(answer.text);
  return new URL(answer.json.url);
}

export async function visit(address: URL, path: string): Promise<IncomingMessage> {
  const token = address.searchParams.get('sandboxer_token');
  const outgoing = request({
    host: '127.0.0.1',
    port: address.port,
    path,
    agent: false,
    headers: { host: address.host, ...(token === null ? {} : { 'sandboxer-preview-token': token }) },
  });
  outgoing.end();
  return responseTo(outgoing);
}

/** A stream of the service inside; and when that is cut, what a new visit is answered. */
async function previewStream(world: World, key: string, isPublic: boolean): Promise<Open> {
  const address = await previewAddress(world, key, isPublic);
  const response = await visit(address, '/stream');
  response.on('error', () => {});
  const { over } = await begun(response);
  const answered = async () => {
    const cut = await over;
    const later = await visit(address, '/');
    later.resume();
    return `${cut} ${later.statusCode}`;
  };
  return { over: answered() };
}

async function previewUpgrade(world: World, key: string): Promise<Open> {
  const address = await previewAddress(world, key, false);
  const socket = connect(Number(address.port), '127.0.0.1');
  const token = address.searchParams.get('sandboxer_token');
  socket.write(
    `GET /echo HTTP/1.1\r\nHost: ${address.host}\r\nsandboxer-preview-token: ${token}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.on('error', () => {});
  return { over: new Promise((resolve) => socket.once('close', () => resolve('cut'))) };
}

type Kind = readonly [ends: string, open: (world: World, key: string) => Promise<Open> | Open];

export const KINDS: Readonly<Record<string, Kind>> = {
  'exec over a WebSocket': [
    '1008 SBX_UNAUTHENTICATED',
    async (world, key) => {
      const socket = webSocket(world, key, '/exec');
      await opened(socket);
      const over = endOfSocket(socket);
      const started = firstMessage(socket);
      socket.send(JSON.stringify({ command: ['cat'], stdin_open: true }));
      await started;
      return { over };
    },
  ],
  'exec over a WebSocket, before its first message': [
    '1008 SBX_UNAUTHENTICATED',
    async (world, key) => {
      const socket = webSocket(world, key, '/exec');
      await opened(socket);
      return { over: endOfSocket(socket) };
    },
  ],
  'a tunnel to a port': [
    '1008',
    async (world, key) => {
      const socket = webSocket(world, key, `/ports/${world.port}/connect`);
      await opened(socket);
      const over = endOfSocket(socket);
      const answered = firstMessage(socket);
      socket.send(Buffer.from('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n'));
      await answered;
      return { over };
    },
  ],
  'exec as a stream': [
    'SBX_UNAUTHENTICATED',
    async (world, key) => {
      const path = `/v1/sandboxes/${world.sandbox}/exec`;
      const options = {
        json: { command: 'while :; do echo on; sleep 0.1; done' },
        headers: headers(key, { accept: 'application/x-ndjson' }),
      };
      return begun(await responseTo(send(world, 'POST', path, options)));
    },
  ],
  'exec that is waited for': [
    '401',
    async (world, key) => {
      const options = { json: { command: ['sleep', '300'] }, headers: headers(key) };
      const answer = answerTo(send(world, 'POST', `/v1/sandboxes/${world.sandbox}/exec`, options));
      return { over: answer.then(({ status }) => String(status)) };
    },
  ],
  'the output of a process': [
    'SBX_UNAUTHENTICATED',
    async (world, key) => {
      const path = `/v1/sandboxes/${world.sandbox}/processes/${world.backgroundProcess}/output`;
      const options = { headers: headers(key, { accept: 'application/x-ndjson' }) };
      return begun(await responseTo(send(world, 'GET', path, options)));
    },
  ],
  events: [
    'SBX_UNAUTHENTICATED',
    async (world, key) => {
      const options = { headers: headers(key, { accept: 'text/event-stream' }) };
      return begun(await responseTo(send(world, 'GET', '/v1/events', options)));
    },
  ],
  'a file that is read slowly': [
    'cut',
    async (world, key) => {
      const path = `/v1/sandboxes/${world.sandbox}/files?path=large`;
      const response = await responseTo(send(world, 'GET', path, { headers: headers(key) }));
      const begun = Promise.withResolvers<void>();
      response.on('data', () => {
        begun.resolve();
        response.pause();
        setTimeout(() => response.resume(), 50).unref();
      });
      const over = new Promise<string>((resolve) => {
        response.once('error', () => resolve('cut'));
        response.once('end', () => resolve('whole'));
      });
      await begun.promise;
      return { over };
    },
  ],
  'a wait for a state': [
    '401',
    async (world, key) => {
      const path = `/v1/sandboxes/${world.sandbox}/wait?for=destroyed&timeout=600`;
      const answer = answerTo(send(world, 'GET', path, { headers: headers(key) }));
      return { over: answer.then(({ status }) => String(status)) };
    },
  ],
  'changes of files': [
    'cut',
    async (world, key) => {
      const path = `/v1/sandboxes/${world.sandbox}/files/watch?path=.`;
      const response = await responseTo(send(world, 'GET', path, { headers: headers(key) }));
      response.on('error', () => {});
      return begun(response);
    },
  ],
  'the upload of a file': [
    '401',
    (world, key) =>
      hangingUpload(
        world,
        key,
        'PUT',
        `/v1/sandboxes/${world.sandbox}/files?path=half`,
        'application/octet-stream',
      ),
  ],
  'the upload of a tree': [
    '401',
    (world, key) => hangingUpload(world, key, 'POST', '/v1/uploads', 'application/x-tar'),
  ],
  'a private preview': ['cut 410', (world, key) => previewStream(world, key, false)],
  'a public preview': ['cut 410', (world, key) => previewStream(world, key, true)],
  'a preview after an upgrade': ['cut', previewUpgrade],
};
