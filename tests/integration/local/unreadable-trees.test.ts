/** Trees of which the user of a sandbox may not read everything. */
import { afterAll, describe, expect, it } from 'vitest';
import { entriesOf } from '../../../src/testing/conformance/tar-archive.ts';
import { LocalServer } from '../../support/local-server.ts';
import { responseTo, send } from '../http/fixture.ts';

const server = await LocalServer.start();
const reason = await server.whyNot();
afterAll(() => server.close());

async function download(id: string, query: string) {
  const target = { socketPath: server.running.socketPath as string };
  const response = await responseTo(send(target, 'GET', `/v1/sandboxes/${id}/files/tree?${query}`));
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, bytes: Buffer.concat(parts), trailers: response.trailers };
}

describe.skipIf(reason !== null)(`unreadable trees${reason === null ? '' : ` (${reason})`}`, () => {
  it('unreadable trees are refused before the first byte, with the path, or arrive without the unreadable part', async () => {
    const id = (await server.client.sandboxes.create({ profile: 'profile.agent-dev' })).sandbox_id;
    await server.inside(id, 'mkdir -p /tmp/t/ä /tmp/t/open && echo x > /tmp/t/open/file && chmod 777 /tmp/t');
    await server.inside(id, 'chown root /tmp/t/ä && chmod 700 /tmp/t/ä', 'root');
    const refused = await download(id, 'path=/tmp/t');
    expect(refused.status).toBe(422);
    expect(JSON.parse(String(refused.bytes))).toMatchObject({
      code: 'SBX_PATH_REFUSED',
      detail: expect.stringContaining('ä: Permission denied'),
      remedy: expect.stringContaining('unreadable=skip'),
    });
    const rest = await download(id, 'path=/tmp/t&unreadable=skip');
    expect(rest.status).toBe(200);
    expect(entriesOf(rest.bytes).map(({ name }) => name)).toEqual(['', 'open', 'open/file']);
    expect(rest.trailers).toMatchObject({
      'x-sandboxer-left-out-count': '1',
      'x-sandboxer-left-out': '%C3%A4',
    });
    const whole = await download(id, 'path=/tmp/t/open&unreadable=skip');
    expect(whole.trailers).toEqual({});
  });

  it('a tree of many levels arrives complete', async () => {
    const id = (await server.client.sandboxes.create({ profile: 'profile.agent-dev' })).sandbox_id;
    await server.inside(
      id,
      'd=/tmp/t; for n in $(seq 400); do d=$d/level; done; mkdir -p $d && echo end > $d/file',
    );
    const { status, bytes } = await download(id, 'path=/tmp/t');
    expect(status).toBe(200);
    expect(String(entriesOf(bytes).at(-1)?.content)).toBe('end\n');
  });
});
