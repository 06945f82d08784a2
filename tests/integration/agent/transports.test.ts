import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { bytesFrom, bytesOf, eventually, finish, runProgram, runShell, spawnSpec } from './programs.ts';
import { agentBinary, isRoot, startAgent } from './running-agent.ts';

const self = ['--user', String(process.getuid?.() ?? 0)];

function over(argv: readonly string[]) {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  return { child, stream: Duplex.from({ readable: child.stdout, writable: child.stdin }) };
}

describe('standard input and output', () => {
  it('standard input and output carry one connection, and the agent ends with it', async () => {
    const { child, stream } = over([agentBinary(), '--stdio', ...self]);
    const session = await connectAgent(stream);
    const input = Buffer.alloc(3_000_000, 'abc');
    expect((await runProgram(session, ['cat'], { input })).stdout.equals(input)).toBe(true);
    const ended = once(child, 'exit');
    await session.close();
    expect(await ended).toEqual([0, null]);
  });

  it('standard input and output lead to an agent that listens on a path, by a relay', async () => {
    const agent = await startAgent();
    const { child, stream } = over([agentBinary(), '--relay', agent.socketPath]);
    const session = await connectAgent(stream);
    const input = Buffer.alloc(5_000_000, 'abc');
    expect((await runProgram(session, ['cat'], { input })).stdout.equals(input)).toBe(true);
    const process = await session.spawn(
      spawnSpec(['sh', '-c', 'sleep 0.3; echo later'], { background: true }),
    );
    const ended = once(child, 'exit');
    await session.close();
    await ended;
    const again = await finish(await (await agent.connect()).attach(process.id, 0));
    expect(again.stdout.toString()).toBe('later\n');
    await agent.stop();
  });

  it('a relay without an agent gives the reason', async () => {
    const { status, stderr } = spawnSync(agentBinary(), ['--relay', '/no/such/socket'], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, expect.stringContaining('/no/such/socket')]);
    expect(spawnSync(agentBinary(), ['--nonsense']).status).toBe(2);
  });
});

/** How each of so many ends that are started by one shell, as close together as can be. */
function startDaemons(path: string, count: number): number[] {
  const script = `
    n=0; pids=; while [ $n -lt ${count} ]; do "$@" & pids="$pids $!"; n=$((n+1)); done
    for pid in $pids; do wait $pid; echo $?; done`;
  const starters = ['sh', '-c', script, 'sh', agentBinary(), '--listen', path, '--daemon', ...self];
  const { stdout } = spawnSync('setsid', starters, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return stdout
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('agent '))
    .map(Number);
}

describe('a daemon', () => {
  it('a daemon listens when its starter returns, refuses a second one, and replaces a dead socket', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sandboxer-daemon-'));
    const path = join(dir, 's');
    const start = () => spawnSync(agentBinary(), ['--listen', path, '--daemon', ...self]).status;
    expect(start()).toBe(0);
    const session = await connectAgent(path);
    expect(start()).toBe(3);
    const { pid } = session.info;
    expect((await runShell(session, 'echo up')).stdout.toString()).toBe('up\n');
    process.kill(pid, 'SIGKILL');
    await session.ended;
    expect(start()).toBe(0);
    const second = await connectAgent(path);
    process.kill(second.info.pid, 'SIGTERM');
    await second.ended;
    rmSync(dir, { recursive: true });
  });

  it('relay --peer: connects to the process that the daemon named, and to no other', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sandboxer-daemon-'));
    const path = join(dir, 's');
    const { stdout } = spawnSync(agentBinary(), ['--listen', path, '--daemon', ...self], {
      encoding: 'utf8',
    });
    const [, pid = 0, since = 0] = (/^agent (\d+) (\d+)\n$/.exec(stdout) ?? []).map(Number);
    const relay = (peer: string) =>
      spawnSync(agentBinary(), ['--relay', path, '--peer', peer], { input: '', encoding: 'utf8' });
    expect(relay(`${pid}:${since}`).status).toBe(0);
    expect(relay(`${pid}`).status).toBe(0);
    for (const other of [`${pid}:${since + 1}`, '1', `${process.pid}:${since}`])
      expect(relay(other)).toMatchObject({
        status: 4,
        stdout: '',
        stderr: expect.stringContaining('another process'),
      });
    for (const wrong of ['0', '-1', `${pid}:`, `${pid}:x`, `${pid} `, 'x'])
      expect(relay(wrong).status).toBe(2);
    process.kill(pid, 'SIGKILL');
    rmSync(dir, { recursive: true });
  });

  it('daemons that start at the same time: one listens and the others exit, also where a dead one was', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sandboxer-daemons-'));
    const path = join(dir, 's');
    for (let round = 0; round < 20; round++) {
      expect(startDaemons(path, 20).toSorted()).toEqual([0, ...Array.from({ length: 19 }, () => 3)]);
      const session = await connectAgent(path);
      expect((await runShell(session, 'echo up')).stdout.toString()).toBe('up\n');
      process.kill(session.info.pid, 'SIGKILL');
      await session.ended;
    }
    rmSync(dir, { recursive: true });
  });

  it.runIf(isRoot)('a daemon answers only its own user and root', async () => {
    const agent = await startAgent();
    chmodSync(agent.socketPath, 0o666);
    const script = `require('net').connect(${JSON.stringify(agent.socketPath)}).on('close', () => process.exit(0)).on('error', () => process.exit(3)); setTimeout(() => process.exit(9), 30_000)`;
    const status = spawnSync('setpriv', [
      '--reuid',
      '65534',
      '--regid',
      '65534',
      '--clear-groups',
      '/usr/bin/env',
      'node',
      '-e',
      script,
    ]);
    expect(status.status).not.toBe(9);
    await agent.stop();
  });
});

describe.runIf(isRoot)('an agent without privileges', () => {
  it('an agent without privileges does everything as its own user', async () => {
    const wrapper = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--inh-caps=-all'];
    const agent = await startAgent({ wrapper, args: [] });
    const session = await agent.connect();
    expect(session.info.uid).toBe(65534);
    expect((await runProgram(session, ['id', '-u'])).stdout.toString()).toBe('65534\n');
    await expect(session.spawn(spawnSpec(['id'], { user: 'daemon' }))).rejects.toMatchObject({
      code: 'SBX_UNSUPPORTED',
    });
    await expect(session.rootFiles.stat('.')).rejects.toMatchObject({ code: 'SBX_UNSUPPORTED' });
    await session.files.write('a/b', bytesFrom('x'));
    expect((await session.files.stat('a/b')).size).toBe(1);
    const tree = await bytesOf(await session.files.download('a'));
    expect(await session.files.upload('c', bytesFrom(tree))).toEqual({ files: 1 });
    await session.files.remove('a', { recursive: true });
    expect(existsSync(join(agent.work, 'a'))).toBe(false);
    const terminal = await runProgram(session, ['stty', 'size'], { terminal: { cols: 81, rows: 25 } });
    expect(terminal.code).toBe(0);
    const daemon = await session.spawn(
      spawnSpec(['sh', '-c', '(setsid sleep 71 &) ; (setsid sleep 72 &) ; sleep 73']),
    );
    expect(await eventually(() => agent.descendants().length >= 3)).toBe(true);
    await daemon.kill('SIGKILL');
    expect(await eventually(() => agent.descendants().length === 0)).toBe(true);
    await agent.stop();
  });
});

describe('ports', () => {
  it('ports are dialled on IPv4 and IPv6, half-closed, and refused where nothing listens', async () => {
    const agent = await startAgent();
    const session = await agent.connect();
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        let text = '';
        socket.on('data', (chunk) => (text += chunk)).on('end', () => socket.end(`got ${text.length}`));
      }).listen(0, host);
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      const connection = await session.dial(port);
      await connection.write(Buffer.alloc(2_000_000, 'x'));
      await connection.end();
      expect((await bytesOf(connection.readable)).toString()).toBe('got 2000000');
      server.close();
      await once(server, 'close');
      await expect(session.dial(port)).rejects.toMatchObject({ code: 'SBX_NOT_FOUND' });
    }
    await agent.stop();
  });

  it('a port that listens inside passes connections out, with their destination', async () => {
    const agent = await startAgent();
    const session = await agent.connect();
    const listener = await session.listen('tcp:127.0.0.1:0');
    const port = Number(listener.address.split(':').at(-1));
    const accepted = listener[Symbol.asyncIterator]();
    const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; echo hello >&3; cat <&3`;
    const client = runProgram(session, ['bash', '-c', script]);
    const { value } = await accepted.next();
    if (value === undefined) throw new Error('No connection came.');
    expect(value.destination).toEqual({ host: '127.0.0.1', port });
    const reader = value.connection.readable[Symbol.asyncIterator]();
    expect(Buffer.from((await reader.next()).value ?? []).toString()).toBe('hello\n');
    await value.connection.write(Buffer.from('answer'));
    await value.connection.end();
    value.connection.destroy();
    expect((await client).stdout.toString()).toBe('answer');
    // Many that nobody takes: they wait, and go when the listener does.
    const flood = await session.spawn(
      spawnSpec([
        'bash',
        '-c',
        `for i in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/${port}; sleep 30) & done; wait`,
      ]),
    );
    await eventually(() => agent.openFiles > 60);
    expect(agent.openFiles).toBeLessThan(120);
    listener.close();
    await flood.detach();
    expect(await eventually(() => agent.openFiles < 20)).toBe(true);
    await expect(session.listen('tcp:127.0.0.1:99999')).rejects.toMatchObject({
      code: 'SBX_INVALID_REQUEST',
    });
    await agent.stop();
  });
});
