import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Fixture } from './fixture.ts';
import { responseTo, startFixture } from './fixture.ts';

const MIB = 1_048_576;
let f: Fixture;
let id: string;
beforeAll(async () => {
  f = await startFixture({
    limits: { bufferedPerKey: 8 * MIB, bufferedBytes: 8 * MIB, messageMs: 400, bodyMs: 3_000 },
  });
  id = await f.create();
}, 60_000);
afterAll(() => f?.close());

const open = (path: string) => new WebSocket(`ws+unix://${f.target.socketPath}:${path}`);
const closeCode = async (webSocket: WebSocket) => (await once(webSocket, 'close'))[0] as number;

/** A body of which the last byte is held back. */
function unfinished(bytes: number) {
  const outgoing = request({
    ...f.target,
    method: 'POST',
    path: `/v1/sandboxes/${id}/exec`,
    agent: false,
    headers: { 'content-type': 'application/json', 'content-length': bytes },
  });
  outgoing.on('error', () => {});
  outgoing.write(`{"stdin":"${'x'.repeat(bytes - 20)}`);
  return { outgoing, answer: responseTo(outgoing).catch(() => null) };
}

describe('bytes that requests make the server hold', () => {
  it('bodies: above the budget a body is refused with Retry-After while the others wait', async () => {
    const bodies = Array.from({ length: 12 }, () => unfinished(2 * MIB));
    const answers = await Promise.all(bodies.map(({ answer }) => answer));
    const refused = answers.filter((answer) => [429, 503].includes(answer?.statusCode ?? 0));
    expect(refused.length).toBeGreaterThanOrEqual(8);
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    for (const { outgoing } of bodies) outgoing.destroy();
    const exec = () => f.call('POST', `/v1/sandboxes/${id}/exec`, { json: { command: ['cat'], stdin: 'x' } });
    expect((await exec()).status).toBe(200);
  }, 20_000);

  it('WebSocket: a message that is never complete ends the connection in time', async () => {
    const webSocket = open(`/v1/sandboxes/${id}/exec`);
    await once(webSocket, 'open');
    webSocket.send('{"command":', { fin: false });
    expect(await closeCode(webSocket)).toBe(1008);
  });

  it('WebSocket: a first message above 1 MiB ends the connection', async () => {
    const webSocket = open(`/v1/sandboxes/${id}/exec`);
    await once(webSocket, 'open');
    webSocket.send(JSON.stringify({ command: ['cat'], stdin: 'x'.repeat(1_500_000) }));
    expect(await closeCode(webSocket)).toBe(1009);
  });
});
