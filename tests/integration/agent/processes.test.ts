import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import { eventually, finish, runProgram, runShell, shellArgv, spawnSpec } from './programs.ts';
import type { RunningAgent } from './running-agent.ts';
import { isRoot, startAgent } from './running-agent.ts';

let agent: RunningAgent;
let session: AgentSession;

beforeAll(async () => {
  agent = await startAgent();
  session = await agent.connect();
});
afterAll(async () => {
  await agent.stop();
});

async function code(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'no error',
    (error: { code?: string }) => error.code ?? String(error),
  );
}

describe('a program', () => {
  it('a program has only the standard descriptors, no core dumps, a higher oom score and its own session', async () => {
    const script =
      'ls /proc/self/fd | wc -l; ulimit -c; cat /proc/self/oom_score_adj; ps -o sid= -p $$; echo $$; umask';
    const lines = (await runShell(session, script)).stdout.toString().split('\n');
    // ls itself has a fourth, for the directory.
    expect(lines.slice(0, 3)).toEqual(['4', '0', '500']);
    expect(lines[3]?.trim()).toBe(lines[4]);
    expect(lines[5]).toBe('0022');
  });

  it('a program gets the signals as a fresh process has them', async () => {
    const status = (await runProgram(session, ['cat', '/proc/self/status'])).stdout.toString();
    expect(/SigBlk:\s+(\w+)/.exec(status)?.[1]).toBe('0000000000000000');
    expect(/SigIgn:\s+(\w+)/.exec(status)?.[1]).toBe('0000000000000000');
  });

  it('a program has HOME, USER and PATH; what was asked for wins; the mark cannot be chosen', async () => {
    const env = { HOME: '/asked', SANDBOXER_PROCESS: 'forged', EMPTY: '' };
    const { stdout } = await runProgram(session, ['env'], { env });
    const found = new Map(
      stdout
        .toString()
        .split('\n')
        .map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]),
    );
    expect(found.get('HOME')).toBe('/asked');
    expect(found.get('EMPTY')).toBe('');
    expect(found.get('PATH')).toContain('/bin');
    expect(found.get('SANDBOXER_PROCESS')).toMatch(/^p\d+-/);
  });

  it('a program takes arguments beyond one frame', async () => {
    const args = Array.from({ length: 15 }, (_, n) => `${n}`.repeat(60_000).slice(0, 60_000));
    const { stdout } = await runProgram(session, shellArgv('printf %s "$@" | md5sum; echo $#', ...args));
    expect(stdout.toString().trim().split('\n').at(-1)).toBe('15');
  });

  it('a program that is too large to start ends with 126', async () => {
    const { code: status, stderr } = await runProgram(session, ['echo', 'x'.repeat(200_000)]);
    expect([status, stderr.toString()]).toEqual([126, expect.stringContaining('long')]);
  });

  it('a program whose directory or user is missing is refused', async () => {
    expect(await code(session.spawn(spawnSpec(['true'], { cwd: '/no/such' })))).toBe('SBX_PATH_NOT_FOUND');
    expect(await code(session.spawn(spawnSpec(['true'], { cwd: '/etc/passwd' })))).toBe('SBX_PATH_REFUSED');
    expect(await code(session.spawn(spawnSpec(['true'], { user: 'nobody-at-all' })))).toBe(
      'SBX_INVALID_REQUEST',
    );
  });

  it.runIf(isRoot)('a program runs as the requested user, with its groups', async () => {
    const { stdout } = await runProgram(session, ['id'], { user: 'daemon' });
    expect(stdout.toString()).toMatch(/^uid=1\(daemon\) gid=1\(daemon\) groups=1\(daemon\)/);
    const numeric = await runProgram(session, ['id', '-u'], { user: '12345' });
    expect(numeric.stdout.toString()).toBe('12345\n');
    expect((await runProgram(session, ['cat', '/etc/shadow'], { user: 'daemon' })).code).toBe(1);
  });

  it.runIf(isRoot)('a program runs in the requested group, by name or number, and in no other', async () => {
    const ids = async (user: string) => {
      const { stdout } = await runProgram(session, ['sh', '-c', 'id -u; id -g; id -G'], { user });
      return stdout.toString().trim().split('\n').join(' ');
    };
    expect(await ids('daemon:tty')).toBe('1 5 5');
    expect(await ids('daemon:600')).toBe('1 600 600');
    expect(await ids('1234:5678')).toBe('1234 5678 5678');
    expect(await ids('1234:tty')).toBe('1234 5 5');
    await expect(session.spawn(spawnSpec(['true'], { user: 'daemon:no-group' }))).rejects.toThrow(
      'there is no group no-group',
    );
  });

  it('an error of a start names the directory or the user that is at fault, not the program', async () => {
    await expect(session.spawn(spawnSpec(['pwd'], { cwd: '/no/such' }))).rejects.toMatchObject({
      detail: '/no/such: No such file or directory',
    });
    const lost = await agent.connect({ user: 'nosuch' });
    await expect(lost.spawn(spawnSpec(['pwd']))).rejects.toThrow('there is no user nosuch');
    await expect(lost.files.list('/')).rejects.toThrow('there is no user nosuch');
  });

  it('a program that leaves a writer behind ends with its output until then, and the writer meets a closed pipe', async () => {
    const begun = Date.now();
    const script = '(while :; do echo more; done) & echo "writer $!"; exit 4';
    const { stdout, code: status } = await runShell(session, script);
    const writer = Number(/writer (\d+)\n/.exec(stdout.toString())?.[1]);
    expect(status).toBe(4);
    expect(writer).toBeGreaterThan(1);
    expect(Date.now() - begun).toBeLessThan(60_000);
    const gone = () => !agent.descendants().some(({ pid, state }) => pid === writer && state !== 'Z');
    expect(await eventually(gone)).toBe(true);
  });

  it('a program whose output is unread is known to have ended when it wrote none', async () => {
    const process = await session.spawn(spawnSpec(['sh', '-c', 'exit 9']));
    expect((await process.exit).code).toBe(9);
  });

  it('a program goes on when its reader stops in the middle', async () => {
    const process = await session.spawn(
      spawnSpec(['sh', '-c', 'dd if=/dev/zero bs=65536 count=256 2>/dev/null; exit 5']),
    );
    for await (const _ of process.output) break;
    expect((await process.exit).code).toBe(5);
  });

  it('a program reports its exit also when a reader stops after all of it has arrived', async () => {
    const process = await session.spawn(spawnSpec(shellArgv('echo first; sleep 0.2; echo second; exit 7')));
    const output = process.output[Symbol.asyncIterator]();
    await output.next();
    // The answers of one connection come in order: the exit is there when a later program has ended.
    await runShell(session, 'sleep 1');
    await output.return?.();
    expect(await Promise.race([process.exit, sleep(10_000, 'never', { ref: false })])).toMatchObject({
      code: 7,
    });
  });

  it('a program in one channel does not wait for an unread program of another', async () => {
    const stuck = await session.spawn(spawnSpec(['cat', '/dev/zero']));
    await sleep(100);
    for (let n = 0; n < 20; n += 1) expect((await runProgram(session, ['echo', String(n)])).code).toBe(0);
    const atRest = async () => {
      const before = agent.residentKb;
      await sleep(300);
      return agent.residentKb - before < 2048;
    };
    expect(await eventually(atRest)).toBe(true);
    await stuck.detach();
  });

  it('a program gets input of many megabytes while it writes as much', async () => {
    const input = randomBytes(20 * 1_048_576);
    const { stdout } = await runProgram(session, ['cat'], { input });
    expect(stdout.equals(input)).toBe(true);
  });

  it('a program that does not read its input blocks nothing, and the unread input is lost', async () => {
    const { code: status } = await runProgram(session, ['true'], { input: randomBytes(4_000_000) });
    expect(status).toBe(0);
  });
});

describe('the whole tree', () => {
  const daemon = (name: string) =>
    `(setsid sh -c 'setsid sleep 7${name} & sleep 8${name}' </dev/null >/dev/null 2>&1 &) ; sleep 9${name}`;
  const sleeps = (name: string) => async () =>
    (await runShell(session, `ps -eo args | grep -c '^sleep [789]${name}$' || true`)).stdout
      .toString()
      .trim();

  it('the whole process tree is reached by a signal, also where a part has become a daemon', async () => {
    const process = await session.spawn(spawnSpec(shellArgv(daemon('0001'))));
    expect(await eventually(async () => (await sleeps('0001')()) === '3')).toBe(true);
    await process.kill('SIGTERM');
    expect((await process.exit).code).toBe(143);
    expect(await eventually(async () => (await sleeps('0001')()) === '0')).toBe(true);
  });

  it('the whole process tree ends when a foreground program is detached or its connection is lost', async () => {
    const other = await agent.connect();
    await other.spawn(spawnSpec(shellArgv(daemon('0002'))));
    const detached = await session.spawn(spawnSpec(shellArgv(daemon('0003'))));
    expect(
      await eventually(async () => (await sleeps('0002')()) === '3' && (await sleeps('0003')()) === '3'),
    ).toBe(true);
    await other.close();
    await detached.detach();
    expect(
      await eventually(async () => (await sleeps('0002')()) === '0' && (await sleeps('0003')()) === '0'),
    ).toBe(true);
  });

  it('the whole process tree leaves no zombie behind', async () => {
    await runShell(session, 'for i in 1 2 3 4 5 6 7 8 9 10; do (setsid true &) ; done');
    expect(await eventually(() => agent.descendants().every(({ state }) => state !== 'Z'))).toBe(true);
  });
});

describe('a background process', () => {
  it('a background process outlives its connection and is read from any offset by another one', async () => {
    const first = await agent.connect();
    const script =
      'i=0; while [ $i -lt 5 ]; do echo out $i; echo err $i >&2; i=$((i+1)); sleep 0.1; done; exit 3';
    const process = await first.spawn(spawnSpec(shellArgv(script), { background: true }));
    await first.close();
    await expect(process.exit).rejects.toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
    const all = await finish(await session.attach(process.id, 0));
    expect(all.code).toBe(3);
    expect(all.stderr.toString()).toBe([0, 1, 2, 3, 4].map((n) => `err ${n}\n`).join(''));
    const part = await finish(await session.attach(process.id, 6));
    expect(part.chunks[0]?.offset).toBe(6);
    expect(part.stdout.length + part.stderr.length).toBe(all.stdout.length + all.stderr.length - 6);
    expect(await code(session.attach(process.id, 10_000))).toBe('SBX_INVALID_REQUEST');
  });

  it('a background process waits for an attached reader and loses nothing; without a reader it continues', async () => {
    const size = 8 * 1_048_576;
    const script = `head -c ${size} /dev/urandom | tee /dev/stderr 2>copy; exit 0`;
    const process = await session.spawn(spawnSpec(shellArgv(script), { background: true }));
    const { stdout, chunks } = await finish(process);
    expect(chunks.every((chunk) => 'data' in chunk)).toBe(true);
    expect(stdout.length).toBe(size);
  });

  it('a background process takes input after a reconnect', async () => {
    const process = await session.spawn({ ...spawnSpec(['cat'], { background: true }), stdin: true });
    await process.write(Buffer.from('one '));
    await process.detach();
    const again = await session.attach(process.id, 0);
    await again.write(Buffer.from('two'));
    await again.endInput();
    expect((await finish(again)).stdout.toString()).toBe('one two');
  });

  it('a background process is listed with its command, while it runs and after', async () => {
    const process = await session.spawn(spawnSpec(['sleep', '0.2'], { background: true }));
    const find = async () => (await session.processes()).find(({ process_id }) => process_id === process.id);
    expect(await find()).toMatchObject({ command: ['sleep', '0.2'], running: true, exit: null, tty: false });
    await process.exit;
    expect(await find()).toMatchObject({ running: false, exit: { code: 0, signal: null } });
  });

  it('a background process is kept when it has ended, but not for ever', async () => {
    for (let n = 0; n < 140; n += 1) {
      const process = await session.spawn(spawnSpec(['echo', String(n)], { background: true }));
      await finish(process);
    }
    expect((await session.processes()).length).toBeLessThanOrEqual(129);
  });

  it('a background process that cannot be started is reported', async () => {
    const process = await session.spawn(spawnSpec(['no-such-thing'], { background: true }));
    const { code: status, stderr } = await finish(process);
    expect([status, stderr.toString()]).toEqual([127, 'no-such-thing: not found\n']);
  });
});

describe('a terminal', () => {
  const terminal = { cols: 100, rows: 30 };

  it('a terminal is a controlling terminal of the right size, echoes, and ends at end-of-file', async () => {
    const process = await session.spawn({
      ...spawnSpec(['sh', '-c', 'stty size; tty; cat; echo over'], { terminal }),
      stdin: true,
    });
    let text = '';
    for await (const chunk of process.output) {
      if ('data' in chunk) text += Buffer.from(chunk.data).toString();
      if (text.includes('/dev/pts') && !text.includes('typed')) await process.write(Buffer.from('typed\n'));
      else if (text.includes('typed\r\ntyped')) await process.endInput();
    }
    expect(text).toMatch(/^30 100\r\n\/dev\/pts\/\d+\r\n/);
    expect(text).toContain('over');
    expect((await process.exit).code).toBe(0);
  });

  it('a terminal passes long output whole', async () => {
    const argv = ['sh', '-c', 'stty raw -echo; head -c 3000000 /dev/zero'];
    const { chunks } = await finish(await session.spawn({ ...spawnSpec(argv, { terminal }), stdin: true }));
    expect(chunks.reduce((sum, chunk) => sum + ('data' in chunk ? chunk.data.length : 0), 0)).toBe(3_000_000);
  });

  it('a terminal without input reads its end at once', async () => {
    expect((await runProgram(session, ['cat'], { terminal, timeoutSeconds: 10 })).code).toBe(0);
  });
});
