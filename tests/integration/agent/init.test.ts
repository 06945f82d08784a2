import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentSession } from '../../../src/extensions/shared/agent-session/agent-session.ts';
import { eventually, finish, runProgram, runShell, shellArgv, spawnSpec } from './programs.ts';
import type { RunningAgent } from './running-agent.ts';
import { agentBinary, canUnshare, startInit } from './running-agent.ts';

const python = spawnSync('python3', ['-c', 'import socket; socket.send_fds']).status === 0;

/** Starts the agent as ext.local's spawner does: fd 3 listening, fd 4 the boot socket; takes what it hands out. */
const BOOT = `
import os, socket, subprocess, struct, sys, threading
agent, path = sys.argv[1], sys.argv[2]
listening = socket.socket(socket.AF_UNIX); listening.bind(path); listening.listen(8)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
def places():
    os.dup2(listening.fileno(), 103); os.dup2(theirs.fileno(), 104); os.dup2(103, 3); os.dup2(104, 4)
child = subprocess.Popen(['unshare', '-p', '-n', '-m', '-f', '--mount-proc', agent, '--init', '--any-ip', '--boot-listen', 'tcp:0.0.0.0:80', '--boot-listen', 'udp:127.0.0.1:53'], close_fds=False, preexec_fn=places)
theirs.close()
data, fds, _, _ = socket.recv_fds(ours, 100, 16)
print(data.decode(), len(fds))
server = socket.socket(fileno=fds[0]); server.setblocking(True)
print(server.getsockname(), server.type == socket.SOCK_STREAM)
c = socket.socket(socket.AF_UNIX); c.connect(path)
def frame(t, ch, p): c.sendall(struct.pack('<IHI', len(p), t, ch) + p)
def text(s): return struct.pack('<I', len(s)) + s + b'\\0'
def receive():
    head, fds, _, _ = socket.recv_fds(c, 10, 4)
    n, t, ch = struct.unpack('<IHI', head)
    body = b''
    while len(body) < n: body += c.recv(n - len(body))
    return t, body, fds
frame(1, 0, b'SBXAGENT' + struct.pack('<H', 1) + text(b'0') + text(b'/')); receive()
frame(0x32, 1, struct.pack('<I', 0)); t, body, again = receive()
print(hex(t), struct.unpack('<I', body)[0], len(again), socket.socket(fileno=again[0]).getsockname())
args = [b'bash', b'-c', b'exec 3<>/dev/tcp/93.184.216.34/80; echo from inside >&3; cat <&3']
frame(0x10, 2, struct.pack('<IQHHI', 0, 0, 0, 0, 65536) + text(b'') + text(b'') + struct.pack('<I', len(args)) + b''.join(map(text, args)) + struct.pack('<I', 0))
conn, peer = server.accept()
print(conn.getsockname(), conn.recv(100))
conn.sendall(b'to inside'); conn.close()
while True:
    t, body, _ = receive()
    if t == 0xa1: print(body)
    if t == 0xa5: break
inner = int(open('/proc/%d/task/%d/children' % (child.pid, child.pid)).read())
os.kill(inner, 15); print(child.wait())
`;

describe.runIf(canUnshare())('the agent as PID 1', () => {
  let agent: RunningAgent;
  let session: AgentSession;
  beforeAll(async () => {
    agent = await startInit();
    session = await agent.connect();
  });
  afterAll(async () => {
    await agent.stop();
  });
  const root = { user: '0' };

  it('the agent as PID 1 reports itself as such, and keeps only the rights it needs', async () => {
    expect(session.info).toMatchObject({ pid: 1, uid: 0 });
    const status = (await runProgram(session, ['cat', '/proc/self/status'], root)).stdout.toString();
    const caps = Object.fromEntries(
      [...status.matchAll(/^Cap(\w+):\s+(\w+)$/gm)].map(([, name, bits]) => [name, bits]),
    );
    const kept = '00000000a00405fb';
    expect(caps).toEqual({ Inh: '0'.repeat(16), Prm: kept, Eff: kept, Bnd: kept, Amb: '0'.repeat(16) });
  });

  it('the agent as PID 1 runs programs as uid 1000 unless the request says otherwise, without any capability', async () => {
    const status = (await runProgram(session, ['cat', '/proc/self/status'])).stdout.toString();
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).toBe('1000');
    expect(/^CapEff:\s+(\w+)/m.exec(status)?.[1]).toBe('0'.repeat(16));
  });

  it('the agent as PID 1 survives every signal from inside', async () => {
    for (const signal of ['TERM', 'INT', 'HUP', 'KILL', 'STOP', 'SEGV', 'PIPE', 'USR1', 'CHLD'])
      await runShell(session, `kill -${signal} 1`, root);
    await session.ping();
    expect(agent.alive).toBe(true);
  });

  it('the agent as PID 1 starts programs although a program inside stops every process it may', async () => {
    const stopper = await session.spawn(spawnSpec(shellArgv('while :; do kill -s STOP -- -1; done')));
    // Each has become that somebody before it is another program: whoever waited for that in the kernel would wait on.
    const started = [stopper];
    for (let n = 0; n < 100; n += 1) started.push(await session.spawn(spawnSpec(['true'])));
    await session.ping();
    for (const program of started) await program.detach();
    expect((await runProgram(session, ['echo', 'on'])).stdout.toString()).toBe('on\n');
  });

  it('the agent as PID 1 cannot be inspected from inside', async () => {
    const script =
      'for f in environ maps mem root cwd exe fd; do cat /proc/1/$f 2>/dev/null | head -c 1; ls /proc/1/$f/ 2>/dev/null; done; true';
    expect((await runShell(session, script)).stdout.toString()).toBe('');
  });

  it('the agent as PID 1 brings the loopback up, and reaps orphans', async () => {
    expect(
      (
        await runShell(
          session,
          'cat /sys/class/net/lo/flags 2>/dev/null; ping -c1 127.0.0.1 >/dev/null 2>&1; cat /proc/net/fib_trie | grep -c 127.0.0.1',
        )
      ).stdout.toString(),
    ).not.toContain('\n0');
    await runShell(session, 'for i in $(seq 50); do (setsid sh -c "sleep 0.05" &) ; done');
    expect(await eventually(() => agent.descendants().length === 0)).toBe(true);
  });

  it('the agent as PID 1 kills a fork bomb of daemons', async () => {
    const bomb =
      'b() { [ $1 -gt 0 ] && { setsid sh -c "sleep 100" & b $(($1-1)); }; }; b 60; setsid sh -c "while :; do setsid sleep 50 & sleep 0.01; done" & sleep 100';
    const process = await session.spawn(spawnSpec(shellArgv(bomb)));
    expect(await eventually(() => agent.descendants().length > 60)).toBe(true);
    await process.kill('SIGKILL');
    expect((await finish(process)).code).toBe(137);
    expect(
      await eventually(() => agent.descendants().filter(({ state }) => state !== 'Z').length === 0),
    ).toBe(true);
  });

  it('the agent as PID 1 ends by a signal from outside', async () => {
    const other = await startInit();
    const connection = await other.connect();
    await connection.ping();
    process.kill(other.pid, 'SIGTERM');
    expect((await connection.ended).code).toBe('SBX_EXTENSION_FAILED');
    expect(await eventually(() => !other.alive)).toBe(true);
    await other.stop();
  });

  it.runIf(python)(
    'the agent as PID 1 reports that it is ready, with its listeners, and passes them out again',
    () => {
      const dir = mkdtempSync(join(tmpdir(), 'sandboxer-boot-'));
      writeFileSync(join(dir, 'boot.py'), BOOT);
      const { stdout, stderr } = spawnSync('python3', [join(dir, 'boot.py'), agentBinary(), join(dir, 's')], {
        encoding: 'utf8',
        timeout: 120_000,
      });
      rmSync(dir, { recursive: true });
      expect({ stdout: stdout.split('\n'), stderr }).toEqual({
        stdout: [
          'READY 1 2 2',
          "('0.0.0.0', 80) True",
          "0xb0 2 1 ('0.0.0.0', 80)",
          "('93.184.216.34', 80) b'from inside\\n'",
          "b'to inside'",
          '0',
          '',
        ],
        stderr: '',
      });
    },
  );
});
