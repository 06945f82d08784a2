/** Either side against one that breaks the protocol. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { PayloadWriter } from '../../../src/extensions/shared/agent-session/payload.ts';
import { T } from '../../../src/extensions/shared/agent-session/wire.ts';
import { bytesFrom, bytesOf, eventually, runProgram, runShell, spawnSpec } from './programs.ts';
import type { RunningAgent } from './running-agent.ts';
import { agentBinary, isRoot, startAgent } from './running-agent.ts';

/** The same sequence on every run. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}

function noise(next: () => number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => next() >>> 24));
}

function frame(
  type: number,
  channel: number,
  payload: Buffer = Buffer.alloc(0),
  length = payload.length,
): Buffer {
  return Buffer.concat([new PayloadWriter().u32(length).u16(type).u32(channel).bytes(), payload]);
}

const HELLO = frame(T.hello, 0, new PayloadWriter().raw('SBXAGENT').u16(1).string('').string('').bytes());
const REQUESTS = [
  T.spawn,
  T.attach,
  T.processes,
  T.stat,
  T.list,
  T.read,
  T.write,
  T.mkdir,
  T.move,
  T.watch,
  T.unpack,
  T.pack,
  T.dial,
  T.listen,
  0x32,
];
const INSIDE = [T.data, T.eof, T.window, T.signal, T.resize, T.close];

function sanitizedBuilds(): boolean {
  try {
    agentBinary(true);
    return true;
  } catch {
    return false;
  }
}

describe('an agent and a hostile host', () => {
  let agent: RunningAgent;
  let honest: AgentSession;
  beforeAll(async () => {
    // As nobody: a path that was mangled must not be made on the machine that runs this.
    const nobody = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--inh-caps=-all'];
    agent = await startAgent({ sanitized: sanitizedBuilds(), args: [], wrapper: isRoot ? nobody : [] });
    honest = await agent.connect();
  });
  afterAll(async () => {
    await agent.stop();
  });

  async function stillWell(): Promise<void> {
    expect(agent.alive, agent.stderr).toBe(true);
    await honest.ping();
    expect((await runProgram(honest, ['echo', 'well'])).stdout.toString()).toBe('well\n');
    expect(agent.stderr).toBe('');
  }

  async function send(bytes: Buffer, cut: number | null = null): Promise<void> {
    const socket = connect(agent.socketPath);
    socket.on('error', () => {}).resume();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await once(socket, 'connect');
    socket.write(cut === null ? bytes : bytes.subarray(0, cut));
    const timer = setTimeout(() => socket.destroy(), 30);
    await closed;
    clearTimeout(timer);
  }

  it('an agent under a hostile host survives random bytes', async () => {
    const next = random(1);
    await Promise.all(Array.from({ length: 60 }, (_, n) => send(noise(next, 1 + (next() % (n * 40 + 1))))));
    await stillWell();
  });

  it('an agent under a hostile host survives random frames after a greeting', async () => {
    const next = random(2);
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(
        Array.from({ length: 8 }, () => {
          const frames = [HELLO];
          for (let n = 0; n < 30; n += 1) {
            const types = next() % 2 === 0 ? REQUESTS : INSIDE;
            const type = types[next() % types.length] ?? T.ping;
            frames.push(frame(type, (next() % 4) + 1, noise(next, next() % 80)));
          }
          return send(Buffer.concat(frames));
        }),
      );
    }
    await stillWell();
  });

  it('an agent under a hostile host survives requests that are almost right', async () => {
    const next = random(3);
    const valid = [
      new PayloadWriter()
        .u32(3)
        .u64(50)
        .u16(80)
        .u16(24)
        .u32(65_536)
        .string('')
        .string('')
        .strings(['sleep', '0'])
        .strings(['A=B'])
        .bytes(),
      new PayloadWriter()
        .u32(7)
        .u64(50)
        .u16(80)
        .u16(24)
        .u32(65_536)
        .string('')
        .string('/')
        .strings(['cat'])
        .strings([])
        .bytes(),
      new PayloadWriter().u8(0).string('/etc').bytes(),
      new PayloadWriter().u8(0).u32(100).u32(65_536).string('/etc').bytes(),
      new PayloadWriter().u8(0).u64(0).u64(10).u32(65_536).string('/etc/passwd').bytes(),
      new PayloadWriter().u8(0).u32(0o644).string('written').bytes(),
      new PayloadWriter().u8(0).u8(1).u32(65_536).string('.').bytes(),
      new PayloadWriter().u8(0).u32(65_536).string('.').bytes(),
      new PayloadWriter().string('tcp:127.0.0.1:0').bytes(),
    ];
    for (let round = 0; round < 150; round += 1) {
      const frames = [HELLO];
      for (let n = 1; n < 12; n += 1) {
        const payload = Buffer.from(valid[next() % valid.length] ?? []);
        for (let flips = next() % 3; flips > 0; flips -= 1) payload[next() % payload.length] = next() >>> 24;
        frames.push(
          frame(
            REQUESTS[next() % REQUESTS.length] ?? T.stat,
            n,
            payload.subarray(0, payload.length - (next() % 4 === 0 ? 1 : 0)),
          ),
        );
        frames.push(frame(INSIDE[next() % INSIDE.length] ?? T.eof, n, noise(next, next() % 6)));
      }
      const bytes = Buffer.concat(frames);
      await send(bytes, next() % 3 === 0 ? next() % bytes.length : null);
    }
    await stillWell();
  });

  it('an agent under a hostile host ends a connection that claims too much, and only that one', async () => {
    for (const bytes of [
      frame(T.ping, 0, Buffer.alloc(0), 0xffff_ffff),
      Buffer.concat([HELLO, frame(T.stat, 1, Buffer.alloc(0), 262_145)]),
      Buffer.concat([HELLO, frame(T.stat, 0x8000_0001, Buffer.alloc(4))]),
      Buffer.concat([HELLO, frame(T.stat, 1, new PayloadWriter().u8(0).u32(0xffff_fff0).bytes())]),
      Buffer.concat([HELLO, ...Array.from({ length: 20 }, () => frame(T.part, 1, Buffer.alloc(262_144)))]),
    ]) {
      const socket = connect(agent.socketPath).on('error', () => {});
      socket.resume();
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(bytes);
      expect(await Promise.race([closed.then(() => 'closed'), sleep(30_000, 'open')])).toBe('closed');
    }
    await stillWell();
  });

  it('an agent does not grow when a host sends requests and does not read', async () => {
    const socket = connect(agent.socketPath).on('error', () => {});
    await once(socket, 'connect');
    socket.write(HELLO);
    const before = agent.residentKb;
    for (let n = 1; n < 60_000 && socket.writable; n += 1) {
      if (!socket.write(frame(T.stat, n, new PayloadWriter().u8(0).string('/etc').bytes()))) {
        if ((await Promise.race([once(socket, 'drain'), sleep(300, null)])) === null) break;
      }
    }
    expect(agent.residentKb - before).toBeLessThan(40_000);
    socket.destroy();
    await stillWell();
  });

  it('an agent serves many connections, refuses more than it can, and recovers', async () => {
    const sockets = Array.from({ length: 100 }, () => connect(agent.socketPath).on('error', () => {}));
    await sleep(300);
    await honest.ping();
    for (const socket of sockets) socket.destroy();
    await sleep(100);
    await stillWell();
  });

  it('an agent keeps no descriptor, process or memory of an ended request', async () => {
    const work = async () => {
      const session = await agent.connect();
      await runShell(session, 'echo out; echo err >&2');
      await runProgram(session, ['cat'], { input: 'x'.repeat(10_000) });
      await runProgram(session, ['no-such']);
      await runProgram(session, ['true'], { terminal: { cols: 80, rows: 24 } });
      await session.spawn(spawnSpec(['/'], {})).catch(() => {});
      await session.spawn(spawnSpec(['true'], { cwd: '/no/such' })).catch(() => {});
      await session.files.write('leak', bytesFrom('x'));
      await bytesOf((await session.files.read('leak')).body);
      await session.files.list('/etc');
      await bytesOf(await session.files.download('.'));
      await session.files.upload('up', bytesFrom(await bytesOf(await session.files.download('leak'))));
      const changes = await session.files.watch('.', { recursive: true, signal: AbortSignal.timeout(1000) });
      await session.files.write('leak', bytesFrom('y'));
      for await (const _ of changes) break;
      await session.dial(1).catch(() => {});
      (await session.listen('tcp:127.0.0.1:0')).close();
      await session.spawn(spawnSpec(['sleep', '100']));
      await session.close();
    };
    await work();
    await sleep(300);
    const before = { files: agent.openFiles, memory: agent.residentKb };
    for (let n = 0; n < 25; n += 1) await work();
    expect(await eventually(() => agent.descendants().length === 0)).toBe(true);
    expect(await eventually(() => agent.openFiles <= before.files)).toBe(true);
    expect(agent.residentKb - before.memory).toBeLessThan(30_000);
  });
});

describe('a host and a hostile agent', () => {
  const WELCOME = frame(
    T.welcome,
    0,
    new PayloadWriter().raw('SBXAGENT').u16(1).u32(0).u32(1).u32(0).u32(262_144).u32(524_288).bytes(),
  );

  async function against(
    play: (socket: Socket) => void,
    work: (session: AgentSession) => Promise<unknown>,
    greetMs = 30_000,
  ) {
    const dir = mkdtempSync(join(tmpdir(), 'sandboxer-hostile-'));
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      play(socket);
    }).listen(join(dir, 's'));
    await once(server, 'listening');
    try {
      const session = await connectAgent(join(dir, 's'), { greetMs });
      return await Promise.race([work(session), sleep(30_000, 'hangs')]);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
      rmSync(dir, { recursive: true, force: true });
    }
  }

  /** Answers the greeting, and the first request with these bytes. */
  const answering = (bytes: Buffer) => (socket: Socket) => {
    socket.write(WELCOME);
    let received = 0;
    socket.on('data', (chunk) => {
      const before = received;
      received += chunk.length;
      if (before <= HELLO.length && received > HELLO.length) socket.write(bytes);
    });
  };

  async function failure(work: Promise<unknown>): Promise<unknown> {
    return await work.then(
      (value) => value,
      (error: unknown) => error,
    );
  }

  it('a host with a hostile agent gives up on a false greeting, or one out of time', async () => {
    for (const bytes of [
      Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\nhello there'),
      frame(T.welcome, 0, Buffer.alloc(30)),
      Buffer.alloc(0),
    ]) {
      const error = await failure(
        against(
          (socket) => socket.write(bytes),
          async () => 'connected',
          500,
        ),
      );
      expect(error).toBeInstanceOf(SandboxerError);
    }
  });

  const read = (session: AgentSession) => session.files.read('/x').then(({ body }) => bytesOf(body));
  const opened = frame(T.opened, 1, new PayloadWriter().u64(10).bytes());

  it.each([
    ['a channel that is not open', frame(T.result, 9)],
    ['an unknown type', frame(0x99, 1)],
    ['a frame of the other side', frame(T.spawn, 1)],
    ['a length beyond all bounds', frame(T.data, 1, Buffer.alloc(0), 0xffff_ffff)],
    ['a control frame too large', frame(T.result, 1, Buffer.alloc(0), 70_000)],
    ['a second greeting', WELCOME],
    ['an answer to no ping', frame(T.pong, 0)],
    ['the wrong answer', frame(T.started, 1, Buffer.from('x'))],
    ['a payload too short', frame(T.opened, 1, Buffer.alloc(3))],
    ['a number that is not exact', frame(T.opened, 1, Buffer.alloc(8, 0xff))],
    ['an error that is none', frame(T.error, 1, Buffer.from('x'))],
    [
      'more bytes than there is credit for',
      Buffer.concat([opened, ...Array.from({ length: 5 }, () => frame(T.data, 1, Buffer.alloc(262_144)))]),
    ],
    [
      'too much credit',
      Buffer.concat(
        Array.from({ length: 3 }, () => frame(T.window, 1, new PayloadWriter().u32(0x7fff_ffff).bytes())),
      ),
    ],
    [
      'a flood of small frames',
      Buffer.concat(
        Array.from({ length: 1000 }, () => frame(T.opened, 1, new PayloadWriter().u64(1).bytes())),
      ),
    ],
  ])('a host with a hostile agent loses the channel at %s', async (_, bytes) => {
    const reader = async (session: AgentSession) => {
      // Nobody reads while it comes.
      const { body } = await session.files.read('/x');
      await sleep(50);
      return await bytesOf(body);
    };
    const error = await failure(against(answering(bytes), reader));
    expect(error).toBeInstanceOf(SandboxerError);
    expect((error as SandboxerError).code).toBe('SBX_EXTENSION_FAILED');
  });

  it('a host shows the text of a hostile agent as one harmless line', async () => {
    const text = `\u001b[2Jboo\n${'x'.repeat(900)}`;
    const bytes = frame(T.error, 1, new PayloadWriter().u16(2).u32(5).string(text).bytes());
    const error = (await failure(against(answering(bytes), read))) as SandboxerError;
    expect(error.code).toBe('SBX_PATH_REFUSED');
    expect(error.detail).not.toMatch(/[\n\u001b]/);
    expect(error.detail.length).toBeLessThan(320);
  });

  it('a host rejects with its own errors, and soon, whatever a hostile agent sends', async () => {
    const next = random(4);
    const types = Object.values(T).filter((type) => type >= 0x40);
    for (let round = 0; round < 60; round += 1) {
      const frames: Buffer[] = [];
      for (let n = 0; n < 20; n += 1) {
        const type = types[next() % types.length] ?? T.data;
        frames.push(
          frame(type, next() % 3, noise(next, next() % 60), next() % 9 === 0 ? next() % 300_000 : undefined),
        );
      }
      const bytes = round % 2 === 0 ? Buffer.concat(frames) : noise(next, 400);
      const error = await failure(
        against(answering(bytes), async (session) => {
          const works = [
            read(session),
            runProgram(session, ['x']),
            session.processes(),
            session.files.list('/x'),
          ];
          setTimeout(() => void session.close(), 20);
          const results = await Promise.allSettled(works);
          for (const result of results) {
            if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(SandboxerError);
          }
          return 'done';
        }),
      );
      expect(error).toBe('done');
    }
  });
});
