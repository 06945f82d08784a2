import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  ExecResult,
  ExecStreamItem,
  FRAME_TYPE,
  FRAMES_MEDIA_TYPE,
} from '../../../src/contract/sandboxes/exec.ts';
import type { Fixture } from './fixture.ts';
import { answerTo, responseTo, send } from './fixture.ts';
import { startLiveFixture, until } from './live-fixture.ts';

let f: Fixture;
let id: string;
beforeAll(async () => {
  f = await startLiveFixture({ limits: { execOutputBytes: 1000 } });
  id = await f.create();
});
afterAll(() => f.close());

const exec = (json: unknown, accept?: string) =>
  f.call('POST', `/v1/sandboxes/${id}/exec`, { json, ...(accept ? { headers: { accept } } : {}) });

interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    frames.push({ type: bytes[at] as number, payload: bytes.subarray(at + 5, end) });
    at = end;
  }
  return frames;
}

function itemsIn(text: string): ExecStreamItem[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') || line.startsWith('data: '));
  return lines.map((line) => ExecStreamItem.parse(JSON.parse(line.replace(/^data: /, ''))));
}

function outputOf(items: readonly ExecStreamItem[], stream: string): Buffer {
  return Buffer.concat(
    items.flatMap((item) =>
      'data' in item && item.type === stream ? [Buffer.from(item.data, item.encoding)] : [],
    ),
  );
}

const BINARY = `printf '\\000\\377\\376ok\\n'; printf 'caf\\303\\251' >&2; exit 7`;
const STDOUT = Buffer.from([0, 255, 254, 111, 107, 10]);
const STDERR = Buffer.from('café');

describe('formats', () => {
  test('exec answers as one JSON document', async () => {
    const text = ExecResult.parse((await exec({ command: 'echo out; echo err >&2; exit 3' })).json);
    expect(text).toMatchObject({ stdout: 'out\n', stderr: 'err\n', encoding: 'utf8', exit: { code: 3 } });
    const binary = ExecResult.parse((await exec({ command: BINARY })).json);
    expect(binary.encoding).toBe('base64');
    expect(Buffer.from(binary.stdout, 'base64')).toEqual(STDOUT);
    expect(Buffer.from(binary.stderr, 'base64')).toEqual(STDERR);
    expect(binary.exit.code).toBe(7);
  });

  test('output beyond the limit is cut between characters, and says so', async () => {
    const { stdout, stdout_truncated, stderr_truncated, exit } = (
      await exec({ command: `i=0; while [ $i -lt 400 ]; do printf 'é€x'; i=$((i+1)); done` })
    ).json;
    expect([stdout_truncated, stderr_truncated, exit.code]).toEqual([true, false, 0]);
    expect(Buffer.byteLength(stdout)).toBeGreaterThan(990);
    expect(stdout).toMatch(/^(?:é€x)+é?€?$/);
  });

  test('lines, events and frames hold the same bytes', async () => {
    const lines = itemsIn((await exec({ command: BINARY }, 'application/x-ndjson')).text);
    const events = itemsIn((await exec({ command: BINARY }, 'text/event-stream')).text);
    const frames = framesIn((await exec({ command: BINARY }, FRAMES_MEDIA_TYPE)).bytes);
    const inFrames = (type: number) =>
      Buffer.concat(frames.filter((frame) => frame.type === type).map(({ payload }) => payload));
    for (const items of [lines, events]) {
      expect(items[0]?.type).toBe('started');
      expect(outputOf(items, 'stdout')).toEqual(STDOUT);
      expect(outputOf(items, 'stderr')).toEqual(STDERR);
      expect(items.at(-1)).toMatchObject({ type: 'exit', exit: { code: 7 } });
    }
    expect(inFrames(FRAME_TYPE.stdout)).toEqual(STDOUT);
    expect(inFrames(FRAME_TYPE.stderr)).toEqual(STDERR);
    expect(frames[0]?.type).toBe(FRAME_TYPE.started);
    expect(JSON.parse(String(frames.at(-1)?.payload))).toMatchObject({ type: 'exit', exit: { code: 7 } });
  });

  test('a format that cannot be produced is refused', async () => {
    expect((await exec({ command: 'true' }, 'image/png')).json.code).toBe('SBX_NOT_ACCEPTABLE');
  });

  test('a large output arrives whole', async () => {
    const command = 'head -c 30000000 /dev/zero | tr "\\000" "z"';
    const frames = framesIn((await exec({ command }, FRAMES_MEDIA_TYPE)).bytes);
    const hash = createHash('sha256');
    let size = 0;
    for (const { type, payload } of frames) {
      if (type !== FRAME_TYPE.stdout) continue;
      hash.update(payload);
      size += payload.length;
    }
    expect(size).toBe(30_000_000);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(Buffer.alloc(size, 'z')).digest('hex'));
  });
});

test('input, environment, directory, shell and argument vector', async () => {
  const stdin = Buffer.from([0, 1, 255]).toString('base64');
  const echoed = await exec({ command: ['cat'], stdin, stdin_encoding: 'base64' });
  expect(Buffer.from(echoed.json.stdout, echoed.json.encoding)).toEqual(Buffer.from([0, 1, 255]));
  const env = await exec({
    command: ['sh', '-c', 'echo $GREETING; pwd'],
    env: { GREETING: 'hello' },
    cwd: '/',
  });
  expect(env.json.stdout.startsWith('hello\n')).toBe(true);
  expect((await exec({ command: ['no-such-program'] })).json.exit.code).toBe(127);
  const slow = await exec({ command: 'sleep 60', timeout: 1 });
  expect(slow.json.exit).toMatchObject({ timed_out: true, code: 137 });
});

const running = async (mark: string) =>
  (
    await exec({ command: `ps -eo args | grep -v grep | grep -c "sleep ${mark}" || true` })
  ).json.stdout.trim() !== '0';

test('a client that hangs up takes a foreground process with it', async () => {
  for (const accept of ['application/json', 'application/x-ndjson', FRAMES_MEDIA_TYPE]) {
    const mark = `9${accept.length}.25`;
    const json = { command: `sleep ${mark}` };
    const outgoing = send(f.target, 'POST', `/v1/sandboxes/${id}/exec`, { json, headers: { accept } });
    outgoing.on('error', () => {});
    await until(() => running(mark), 'it runs');
    outgoing.destroy();
    await until(async () => !(await running(mark)), `it is gone after ${accept}`);
  }
});

describe('background', () => {
  test('starts, is listed, reconnected from an offset, fed, signalled', async () => {
    const command = 'echo one; echo two; read line; echo got $line; sleep 300';
    const started = await exec({ command, background: true, stdin_open: true });
    expect(started.status).toBe(202);
    const { process_id } = started.json;
    const url = `/v1/sandboxes/${id}/processes/${process_id}`;
    expect(started.headers.location).toBe(`${url}/output`);

    const follow = send(f.target, 'GET', `${url}/output?from=4`, {
      headers: { accept: 'application/x-ndjson' },
    });
    const response = await responseTo(follow);
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    response.on('error', () => {});
    await until(() => text.includes('two'), 'its output is seen');
    const fed = await f.call('POST', `${url}/stdin`, {
      body: 'food\n',
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect([fed.status, fed.text]).toEqual([204, '']);
    follow.destroy();

    const list = await f.call('GET', `/v1/sandboxes/${id}/processes`);
    const listed = list.json.items.find((item: { process_id: string }) => item.process_id === process_id);
    expect(listed).toMatchObject({ running: true, exit: null });

    const killed = await f.call('POST', `${url}/signal`, { json: { signal: 'SIGTERM' } });
    expect(killed.status).toBe(204);
    const rest = await f.call('GET', `${url}/output`, { headers: { accept: 'application/x-ndjson' } });
    const items = itemsIn(rest.text);
    expect(items.at(-1)).toMatchObject({ type: 'exit', exit: { signal: 'SIGTERM' } });
    expect((await f.call('DELETE', url)).status).toBe(204);
  });

  test('DELETE kills a background process', async () => {
    const { process_id } = (await exec({ command: 'sleep 301', background: true })).json;
    expect((await f.call('DELETE', `/v1/sandboxes/${id}/processes/${process_id}`)).status).toBe(204);
    const { json } = await f.call('GET', `/v1/sandboxes/${id}/processes`);
    const listed = json.items.find((item: { process_id: string }) => item.process_id === process_id);
    expect(listed).toMatchObject({ running: false, exit: { signal: 'SIGKILL' } });
  });

  test('an unknown process is not found', async () => {
    const { json } = await f.call('DELETE', `/v1/sandboxes/${id}/processes/nope`);
    expect(json).toMatchObject({ status: 404, code: 'SBX_PROCESS_NOT_FOUND' });
  });

  test('a foreground process can be signalled without being let go', async () => {
    const json = { command: 'trap "echo caught; exit 5" TERM; echo up; while :; do sleep 0.05; done' };
    const headers = { accept: 'application/x-ndjson' };
    const outgoing = send(f.target, 'POST', `/v1/sandboxes/${id}/exec`, { json, headers });
    const response = await responseTo(outgoing);
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await until(() => text.includes('up'), 'it runs');
    const { process_id } = JSON.parse(text.split('\n')[0] as string);
    const url = `/v1/sandboxes/${id}/processes/${process_id}/signal`;
    expect((await f.call('POST', url, { json: { signal: 'SIGTERM' } })).status).toBe(204);
    await until(() => text.includes('"exit"'), 'it ends');
    expect(itemsIn(text).at(-1)).toMatchObject({ type: 'exit', exit: { code: 5 } });
  });
});

describe('interactive', () => {
  function frame(type: number, payload: Uint8Array | string = ''): Buffer {
    const body = Buffer.from(payload as string);
    const header = Buffer.alloc(5);
    header[0] = type;
    header.writeUInt32BE(body.length, 1);
    return Buffer.concat([header, body]);
  }

  function connect(path: string, headers: Record<string, string> = {}, protocols: string[] = []) {
    const webSocket = new WebSocket(`ws+unix://${f.target.socketPath}:${path}`, protocols, { headers });
    const frames: Frame[] = [];
    webSocket.on('message', (data) => frames.push(...framesIn(data as Buffer)));
    const closed = new Promise<{ code: number; reason: string }>((resolve) => {
      webSocket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
    });
    const opened = new Promise<void>((resolve, reject) => {
      webSocket.once('open', resolve);
      webSocket.once('error', reject);
    });
    const output = () =>
      Buffer.concat(
        frames.filter(({ type }) => type === FRAME_TYPE.stdout).map(({ payload }) => payload),
      ).toString();
    return { webSocket, frames, closed, opened, output };
  }

  test('input and output, end of input, exit', async () => {
    const { webSocket, frames, closed, opened, output } = connect(`/v1/sandboxes/${id}/exec`);
    await opened;
    webSocket.send(JSON.stringify({ command: ['cat'] }));
    const big = 'x'.repeat(3_000_000);
    webSocket.send(frame(FRAME_TYPE.stdin, 'hello '));
    webSocket.send(Buffer.concat([frame(FRAME_TYPE.stdin, big), frame(FRAME_TYPE.stdinEnd)]));
    expect(await closed).toEqual({ code: 1000, reason: '' });
    expect(output()).toBe(`hello ${big}`);
    expect(JSON.parse(String(frames.at(-1)?.payload))).toMatchObject({ type: 'exit', exit: { code: 0 } });
  });

  test('a signal overtakes unread input', async () => {
    const { webSocket, frames, closed, opened, output } = connect(`/v1/sandboxes/${id}/exec`);
    await opened;
    webSocket.send(JSON.stringify({ command: 'trap "exit 9" INT; echo up; while :; do sleep 0.05; done' }));
    await until(() => output().includes('up'), 'it runs');
    webSocket.send(frame(FRAME_TYPE.stdin, 'y'.repeat(500_000)));
    webSocket.send(frame(FRAME_TYPE.signal, JSON.stringify({ signal: 'SIGINT' })));
    expect((await closed).code).toBe(1000);
    expect(JSON.parse(String(frames.at(-1)?.payload))).toMatchObject({ exit: { code: 9 } });
  });

  test('a closed connection kills an interactive program', async () => {
    const { webSocket, opened } = connect(`/v1/sandboxes/${id}/exec`);
    await opened;
    webSocket.send(JSON.stringify({ command: 'sleep 77.5' }));
    await until(() => running('77.5'), 'it runs');
    webSocket.terminate();
    await until(async () => !(await running('77.5')), 'it is gone');
  });

  test('an error in an interactive exec is sent in a frame and in the close code', async () => {
    for (const message of ['{', '{"command":[]}', '{"command":["true"],"unknown":1}']) {
      const { webSocket, frames, closed, opened } = connect(`/v1/sandboxes/${id}/exec`);
      await opened;
      webSocket.send(message);
      expect(await closed).toEqual({ code: 1008, reason: 'SBX_INVALID_REQUEST' });
      const { problem } = JSON.parse(String(frames.at(-1)?.payload));
      expect(problem).toMatchObject({ code: 'SBX_INVALID_REQUEST', status: 400 });
    }
    const { webSocket, closed, opened } = connect(`/v1/sandboxes/${id}/exec`);
    await opened;
    webSocket.send(JSON.stringify({ command: ['cat'] }));
    webSocket.send(Buffer.from([99, 0, 0, 0, 0]));
    expect((await closed).code).toBe(1008);
  });

  test('refusals before the handshake are HTTP', async () => {
    await expect(connect('/v1/sandboxes/nope/exec').opened).rejects.toThrow('404');
    await expect(connect(`/v1/sandboxes/${id}/nothing`).opened).rejects.toThrow('404');
    const badKey = { authorization: 'Bearer sk-nothing-at-all' };
    await expect(connect(`/v1/sandboxes/${id}/exec`, badKey).opened).rejects.toThrow('401');
    await expect(
      connect(`/v1/sandboxes/${id}/exec`, { 'sandboxer-api-version': '99' }).opened,
    ).rejects.toThrow('426');
    const plain = await f.call('GET', `/v1/sandboxes/${id}/exec`);
    expect(plain.json).toMatchObject({ status: 400, code: 'SBX_INVALID_REQUEST' });
    expect(plain.json.remedy).toContain('Upgrade');
  });

  test('a browser sends its key as a subprotocol, which is not echoed', async () => {
    const { secret } = (
      await f.call('POST', '/v1/keys', { json: { name: 'b', scopes: ['read', 'sandboxes'] } })
    ).json;
    const good = connect(`/v1/sandboxes/${id}/exec`, {}, ['sandboxer.v1', `bearer.${secret}`]);
    await good.opened;
    expect(good.webSocket.protocol).toBe('sandboxer.v1');
    good.webSocket.terminate();
    const { secret: weak } = (await f.call('POST', '/v1/keys', { json: { name: 'c', scopes: ['read'] } }))
      .json;
    await expect(connect(`/v1/sandboxes/${id}/exec`, {}, [`bearer.${weak}`]).opened).rejects.toThrow('403');
  });
});

describe('ports', () => {
  const SERVER = `import socket
s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(1); print(s.getsockname()[1],flush=True)
c,_=s.accept()
total=0
while True:
    d=c.recv(65536)
    if not d: break
    total+=len(d); c.sendall(d)
c.sendall(b"|%d"%total); c.close()`;

  test('a tunnel carries bytes both ways and half-closes', async () => {
    const { process_id } = (await exec({ command: ['python3', '-c', SERVER], background: true })).json;
    const url = `/v1/sandboxes/${id}/processes/${process_id}/output`;
    const follow = send(f.target, 'GET', url, { headers: { accept: 'application/x-ndjson' } });
    let text = '';
    (await responseTo(follow)).setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await until(() => text.includes('stdout'), 'it listens');
    const output = itemsIn(text).find(({ type }) => type === 'stdout') as { data: string };
    const webSocket = new WebSocket(
      `ws+unix://${f.target.socketPath}:/v1/sandboxes/${id}/ports/${output.data.trim()}/connect`,
    );
    const parts: Buffer[] = [];
    webSocket.on('message', (data) => parts.push(data as Buffer));
    await new Promise((resolve) => webSocket.once('open', resolve));
    const payload = Buffer.alloc(2_000_000, 7);
    webSocket.send(payload);
    webSocket.send('end');
    const code = await new Promise((resolve) => webSocket.once('close', resolve));
    expect(code).toBe(1000);
    expect(Buffer.concat(parts)).toEqual(Buffer.concat([payload, Buffer.from('|2000000')]));
  });

  test('a port without a listener is refused', async () => {
    const webSocket = new WebSocket(`ws+unix://${f.target.socketPath}:/v1/sandboxes/${id}/ports/9/connect`);
    await expect(new Promise((_, reject) => webSocket.once('error', reject))).rejects.toThrow('404');
  });
});

test('a stopped server ends its open answers', async () => {
  const other = await startLiveFixture();
  const sandbox = await other.create();
  const outgoing = send(other.target, 'POST', `/v1/sandboxes/${sandbox}/exec`, {
    json: { command: 'echo up; sleep 100' },
    headers: { accept: 'application/x-ndjson' },
  });
  const answer = answerTo(outgoing);
  await responseTo(outgoing);
  const startedAt = performance.now();
  await other.close();
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  const last = itemsIn((await answer).text).at(-1);
  expect(last).toMatchObject({ type: 'error', problem: { code: 'SBX_UNAVAILABLE' } });
});
