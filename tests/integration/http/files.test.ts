import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FileChange, FileEntry, FileListing } from '../../../src/contract/sandboxes/files.ts';
import type { Fixture } from './fixture.ts';
import { answerTo, responseTo, send } from './fixture.ts';
import { startLiveFixture, until } from './live-fixture.ts';

let f: Fixture;
let url: string;
beforeAll(async () => {
  f = await startLiveFixture({ limits: { uploadBytes: 20_000_000, idleUploadMs: 2_000 } });
  url = `/v1/sandboxes/${await f.create()}/files`;
});
afterAll(() => f.close());

const at = (path: string) => `${url}?path=${encodeURIComponent(path)}`;

test('every byte of a file comes back', async () => {
  const bytes = randomBytes(3_000_001);
  const written = await f.call('PUT', `${at('d/é x.bin')}&mode=600`, { body: bytes });
  expect(written.status).toBe(200);
  expect(FileEntry.parse(written.json)).toMatchObject({ kind: 'file', size: bytes.length, mode: 0o600 });
  const read = await f.call('GET', at('d/é x.bin'));
  expect(read.bytes.equals(bytes)).toBe(true);
  expect(read.headers).toMatchObject({
    'content-length': String(bytes.length),
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment',
    'x-content-type-options': 'nosniff',
  });
  const head = await f.call('HEAD', at('d/é x.bin'));
  expect([head.status, head.headers['content-length'], head.bytes.length]).toEqual([
    200,
    String(bytes.length),
    0,
  ]);
});

test('ranges of a file', async () => {
  await f.call('PUT', at('r'), { body: '0123456789' });
  const range = (value: string) => f.call('GET', at('r'), { headers: { range: value } });
  const some = await range('bytes=2-4');
  expect([some.status, some.text, some.headers['content-range']]).toEqual([206, '234', 'bytes 2-4/10']);
  expect((await range('bytes=7-')).text).toBe('789');
  expect((await range('bytes=-3')).text).toBe('789');
  expect((await range('bytes=8-100')).text).toBe('89');
  expect((await range('bytes=-100')).text).toBe('0123456789');
  const beyond = await range('bytes=10-');
  expect(beyond.json).toMatchObject({ status: 416, code: 'SBX_RANGE_NOT_SATISFIABLE' });
  expect(beyond.headers['content-range']).toBe('bytes */10');
  for (const ignored of ['bytes=4-2', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=x-']) {
    expect((await range(ignored)).status).toBe(200);
  }
});

test('list, stat, mkdir, move, remove', async () => {
  const made = await f.call('POST', `${url}/mkdir`, { json: { path: 'tree/a/b', mode: 0o700 } });
  expect(made.status).toBe(204);
  await f.call('PUT', at('tree/one'), { body: '1' });
  const list = FileListing.parse((await f.call('GET', `${url}/list?path=tree`)).json);
  expect(list.entries.map(({ name, kind }) => [name, kind])).toEqual([
    ['a', 'directory'],
    ['one', 'file'],
  ]);
  expect((await f.call('GET', `${url}/list?path=tree&limit=1`)).json).toMatchObject({ truncated: true });
  const moved = await f.call('POST', `${url}/move`, { json: { from: 'tree/one', to: 'tree/two' } });
  expect(moved.status).toBe(204);
  expect(FileEntry.parse((await f.call('GET', `${url}/stat?path=tree/two`)).json).size).toBe(1);
  expect((await f.call('GET', `${url}/stat?path=tree/one`)).json.code).toBe('SBX_PATH_NOT_FOUND');
  expect((await f.call('DELETE', at('tree'))).status).toBeGreaterThanOrEqual(400);
  expect((await f.call('DELETE', `${at('tree')}&recursive=true`)).status).toBe(204);
  expect((await f.call('DELETE', `${at('tree')}&recursive=true`)).status).toBe(204);
});

test('paths that cannot be used are refused', async () => {
  expect((await f.call('GET', `${url}?path=`)).json).toMatchObject({ status: 400, field: 'path' });
  expect((await f.call('GET', url)).json).toMatchObject({ status: 400, field: 'path' });
  expect((await f.call('GET', `${url}?path=a%00b`)).status).toBe(400);
  expect((await f.call('GET', `${url}?path=a&path=b`)).status).toBe(400);
  expect(await f.call('GET', at('/'))).toMatchObject({ status: 422 });
  const out = await f.call('GET', at('../../../../../../etc/passwd'));
  expect(out.status).toBeGreaterThanOrEqual(400);
  await f.call('PUT', at('x'), { body: 'first' });
  const exclusive = await f.call('PUT', `${at('x')}&exclusive=true`, { body: 'second' });
  expect(exclusive.json.code).toBe('SBX_PATH_REFUSED');
  expect((await f.call('GET', at('x'))).text).toBe('first');
});

test('trees are uploaded and downloaded as tar', async () => {
  await f.call('PUT', at('src/a.txt'), { body: 'A' });
  await f.call('PUT', at('src/deep/b.bin'), { body: Buffer.from([0, 255]) });
  const tar = await f.call('GET', `${url}/tree?path=src`);
  expect(tar.headers['content-type']).toBe('application/x-tar');
  expect(tar.bytes.length % 512).toBe(0);
  const headers = { 'content-type': 'application/x-tar' };
  const up = await f.call('PUT', `${url}/tree?path=copy`, { body: tar.bytes, headers });
  expect([up.status, up.json]).toEqual([200, { files: 2 }]);
  expect((await f.call('GET', at('copy/deep/b.bin'))).bytes).toEqual(Buffer.from([0, 255]));
  const wrong = await f.call('PUT', `${url}/tree?path=copy`, {
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  expect(wrong.json).toMatchObject({ status: 415, code: 'SBX_UNSUPPORTED_MEDIA' });
});

test.each(['application/x-ndjson', 'text/event-stream'])('changes are reported as %s', async (accept) => {
  const directory = `w-${accept.length}`;
  await f.call('POST', `${url}/mkdir`, { json: { path: directory } });
  const outgoing = send(f.target, 'GET', `${url}/watch?path=${directory}`, { headers: { accept } });
  const response = await responseTo(outgoing);
  expect(response.statusCode).toBe(200);
  let text = '';
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  response.on('error', () => {});
  await f.call('PUT', at(`${directory}/new`), { body: 'x' });
  await until(async () => text.includes('/new'), 'the change is seen');
  const line = text.split('\n').find((each) => each.includes('{')) as string;
  expect(FileChange.parse(JSON.parse(line.replace(/^data: /, '')))).toBeTruthy();
  outgoing.destroy();
  expect((await f.call('GET', `${url}/watch?path=nowhere`)).json).toMatchObject({
    code: 'SBX_PATH_NOT_FOUND',
  });
});

describe('uploads are bounded', () => {
  test('uploads are bounded by size, declared or not', async () => {
    const declared = await f
      .call('PUT', at('big'), { body: Buffer.alloc(20_000_001) })
      .catch((error) => error);
    if (declared instanceof Error) expect(declared.message).toMatch(/EPIPE|ECONNRESET/);
    else expect(declared.json).toMatchObject({ status: 413, code: 'SBX_PAYLOAD_TOO_LARGE' });
    const chunked = request({ ...f.target, method: 'PUT', path: at('big'), agent: false });
    const answer = answerTo(chunked).catch((error: Error) => error);
    for (let sent = 0; sent <= 21; sent += 1) chunked.write(Buffer.alloc(1_000_000));
    chunked.end();
    const got = await answer;
    if (got instanceof Error) expect(got.message).toMatch(/EPIPE|ECONNRESET/);
    else expect(got.json).toMatchObject({ status: 413 });
    expect((await f.call('GET', at('big'))).json.code).toBe('SBX_PATH_NOT_FOUND');
  });

  test('uploads are bounded by silence', async () => {
    const socket = connect(f.target.socketPath as string);
    socket.write(`PUT ${at('slow')} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc`);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await closed;
    expect((await f.call('GET', at('slow'))).json.code).toBe('SBX_PATH_NOT_FOUND');
  });

  test('an upload that breaks off leaves nothing', async () => {
    const outgoing = request({
      ...f.target,
      method: 'PUT',
      path: at('half'),
      agent: false,
      headers: { 'content-length': 1000 },
    });
    outgoing.on('error', () => {});
    outgoing.write('half');
    await new Promise((resolve) => setTimeout(resolve, 100));
    outgoing.destroy();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect((await f.call('GET', at('half'))).json.code).toBe('SBX_PATH_NOT_FOUND');
  });
});
