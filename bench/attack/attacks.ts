/** The attacks that a tenant with a key can make. Each runs until its process is ended; each is bounded, on loopback. */
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Target {
  readonly port: number;
  readonly key: string;
  /** A sandbox of the attacker. */
  readonly sandbox: string;
}

const MIB = 1_048_576;

/** Counts of the attacked server's answers, by status; 0: the connection ended without an answer. */
export const answers = new Map<number, number>();

function count(status: number): number {
  answers.set(status, (answers.get(status) ?? 0) + 1);
  return status;
}

/** Sends a request and reads the answer to its end; errors are ignored. */
function call(
  target: Target,
  method: string,
  path: string,
  body?: string | Buffer,
  more: Record<string, string> = {},
) {
  return new Promise<number>((resolve) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const headers = {
      authorization: `Bearer ${target.key}`,
      'content-type': 'application/json',
      ...length,
      ...more,
    };
    const outgoing = request({ host: '127.0.0.1', port: target.port, agent: AGENT, method, path, headers });
    outgoing.on('error', () => resolve(count(0)));
    outgoing.on('response', (response: IncomingMessage) => {
      response.resume();
      response.on('close', () => resolve(count(response.statusCode ?? 0)));
    });
    outgoing.end(body);
  });
}

const AGENT = new Agent({ keepAlive: true, maxSockets: 256 });

/** Runs `lanes` requests at a time, for ever. */
function endlessly(lanes: number, work: (n: number) => Promise<unknown>): void {
  let n = 0;
  const lane = async () => {
    for (;;) {
      const begun = performance.now();
      await work(n++);
      // A refusal without an answer would otherwise be a loop of this process alone.
      if (performance.now() - begun < 1) await sleep(1);
    }
  };
  for (let at = 0; at < lanes; at += 1) void lane();
}

/** Keeps connections open; a connection that ends is opened again, after a while. */
function held(target: Target, connections: number, open: (socket: Socket) => void): void {
  const one = () => {
    const socket = connect(target.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.once('close', () => setTimeout(one, 250));
    socket.once('connect', () => open(socket));
    socket.once('data', (chunk: Buffer) => count(Number(chunk.toString('latin1', 9, 12))));
  };
  for (let at = 0; at < connections; at += 1) one();
}

const head = (target: Target, line: string, headers: Record<string, string | number> = {}) =>
  [
    `${line} HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${target.key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

const upgrade = (target: Target, path: string) =>
  head(target, `GET ${path}`, {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': 13,
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  });

const braces = (levels: number) => '{'.repeat(levels) + '}'.repeat(levels);
const entries = (count: number) => Array.from({ length: count }, (_, at) => `"a${at}":0`).join(',');

export const ATTACKS: Readonly<Record<string, (target: Target) => void>> = {
  yaml_bombs(target) {
    const texts = [
      braces(30),
      `- ${braces(24)}\n`.repeat(12),
      `- ${braces(24)}\n`.repeat(3_000),
      '- '.repeat(100_000),
    ];
    const yaml = { 'content-type': 'application/yaml' };
    endlessly(4, (n) => {
      const text = texts[n % texts.length] as string;
      if (n % 2 === 0) return call(target, 'POST', '/v1/profiles?validate=true', text, yaml);
      return call(target, 'POST', '/v1/registry/validate', JSON.stringify({ file: 'x.yaml', text }));
    });
  },
  json_env(target) {
    const body = `{"command":["true"],"env":{${entries(700_000)}}}`;
    endlessly(2, () => call(target, 'POST', `/v1/sandboxes/${target.sandbox}/exec`, body));
  },
  json_values_within_bounds(target) {
    const body = `{"command":["true"],"env":{${entries(40_000)}}}`;
    const labels = `{"labels":{${entries(9_000)}}}`;
    endlessly(4, (n) =>
      n % 2 === 0
        ? call(target, 'POST', `/v1/sandboxes/${target.sandbox}/exec`, body)
        : call(target, 'POST', '/v1/sandboxes', labels),
    );
  },
  slow_bodies(target) {
    const length = 10 * MIB;
    const part = Buffer.alloc(9.9 * MIB, 'x');
    held(target, 200, (socket) => {
      const line = `POST /v1/sandboxes/${target.sandbox}/exec`;
      socket.write(head(target, line, { 'content-type': 'application/json', 'content-length': length }));
      socket.write('{"command":["cat"],"stdin":"');
      socket.write(part);
    });
  },
  websocket_messages(target) {
    const start = Buffer.alloc(14);
    start[0] = 0x82;
    start[1] = 0xff;
    start.writeBigUInt64BE(BigInt(10 * MIB), 2);
    const part = Buffer.alloc(9 * MIB);
    held(target, 50, (socket) => {
      socket.write(upgrade(target, `/v1/sandboxes/${target.sandbox}/exec`));
      socket.once('data', () => {
        socket.write(start);
        socket.write(part);
      });
    });
  },
  wrong_keys(target) {
    endlessly(64, (n) => call({ ...target, key: `wrong-key-number-${n}` }, 'GET', '/v1/sandboxes'));
  },
  creates(target) {
    endlessly(8, async (n) => {
      const id = `flood-${n}`;
      await call(target, 'POST', '/v1/sandboxes', JSON.stringify({ id, profile: 'profile.bench-memory' }));
      await call(target, 'DELETE', `/v1/sandboxes/${id}`);
    });
  },
  validates(target) {
    const text = `id: profile.x\nversion: 1.0.0\n${Array.from({ length: 2_000 }, (_, n) => `k${n}: [a, b]`).join('\n')}`;
    const yaml = { 'content-type': 'application/yaml' };
    endlessly(8, () => call(target, 'POST', '/v1/profiles?validate=true', text, yaml));
  },
  distinct_disks(target) {
    endlessly(2, async (n) => {
      const name = `disk-${n}`;
      await call(target, 'POST', '/v1/volumes', JSON.stringify({ name, size_mb: 64 + n }));
      await call(target, 'DELETE', `/v1/volumes/${name}`);
    });
  },
  unread_output(target) {
    const body = JSON.stringify({ command: ['sh', '-c', 'yes'] });
    held(target, 8, (socket) => {
      socket.pause();
      const headers = {
        accept: 'application/x-ndjson',
        'content-type': 'application/json',
        'content-length': body.length,
      };
      socket.write(head(target, `POST /v1/sandboxes/${target.sandbox}/exec`, headers) + body);
    });
  },
  slow_readers(target) {
    held(target, 200, (socket) => {
      socket.pause();
      socket.write(head(target, 'GET /v1/events?after=0', { accept: 'text/event-stream' }));
    });
    held(target, 50, (socket) => {
      socket.pause();
      socket.write(head(target, 'GET /v1/openapi.json').repeat(50));
    });
  },
  connections(target) {
    endlessly(32, () => {
      const socket = connect(target.port, '127.0.0.1');
      return new Promise((resolve) => {
        socket.on('error', resolve);
        socket.once('connect', () => socket.destroy());
        socket.once('close', resolve);
      });
    });
  },
  half_heads(target) {
    held(target, 1_000, (socket) => void socket.write('GET /v1/sandboxes HTTP/1.1\r\nhost: x\r\nx-slow: '));
  },
  broken_archives(target) {
    const bytes = Buffer.alloc(20 * MIB, 'A');
    const tar = { 'content-type': 'application/x-tar' };
    endlessly(2, () => call(target, 'PUT', `/v1/sandboxes/${target.sandbox}/files/tree?path=x`, bytes, tar));
  },
  refused_bodies(target) {
    const bytes = Buffer.alloc(4.5 * MIB, ' ');
    endlessly(8, () => call(target, 'POST', '/v1/sandboxes', bytes, { connection: 'close' }));
  },
};
