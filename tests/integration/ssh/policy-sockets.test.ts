/** `ext.ssh` under policy: no unix socket outside is reached, and what programs ordinarily do still works. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { createServer } from 'node:net';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Handle } from '../../../src/core/ports/extension.ts';
import type { SandboxSession } from '../../../src/core/ports/session.ts';
import { createSshExtension } from '../../../src/extensions/ssh/create.ts';
import { runProgram, runShell } from '../../../src/testing/conformance/run-program.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing } from '../../../src/testing/ssh-server.ts';
import { PLAIN_UID, startPlainUserServer, whyNoPlainUser } from '../../support/plain-user-server.ts';
import { contextOf, policySpec } from './policy-spec.ts';

const agent = join(import.meta.dirname, '..', '..', '..', 'agent', 'build', 'sandboxer-agent');
const EACCES = '13';
const SIGSYS = 'signal 31';

/** The result that each attempt of socket-probe.c must have. */
const HELD: Readonly<Record<string, string>> = {
  by_path: EACCES,
  by_datagram: EACCES,
  by_abstract_name: EACCES,
  pair_of_datagrams: EACCES,
  raw_pair: EACCES,
  stream_connected_anew: '106',
  pair_that_listens: '22',
  virtual_machines: '97',
  ciphers: '97',
  io_uring: '38',
  keyring: '38',
  traced: '1',
  taken_descriptor: '1',
  inherited: '2',
  ...(machine() === 'x86_64' ? { by_x32: SIGSYS, by_i386: SIGSYS } : {}),
};
const ORDINARY = { stream_pair: '0', packet_pair: '0', tcp: '0', interfaces: '0' };

describe.skipIf((sshServerMissing() ?? whyNoPlainUser()) !== null)(
  'unix sockets under isolation policy',
  { timeout: 60_000 },
  () => {
    const extension = createSshExtension({ agents: { [machine()]: agent } });
    const outside = mkdtempSync(join(tmpdir(), 'sandboxer-sockets-'));
    const path = join(outside, 'bus');
    const other = spawn('setpriv', [
      ...[`--reuid=${PLAIN_UID}`, `--regid=${PLAIN_UID}`, '--clear-groups'],
      ...['sleep', '600'],
    ]);
    let connections = 0;
    let bus: Server;
    let server: SshServer;
    let handle: Handle;
    let session: SandboxSession;
    let work = '';

    const run = async (script: string) => {
      const { code, stdout, stderr } = await runShell(session, script);
      return { code, said: `${stdout}${stderr}` };
    };
    const bring = (from: string, name: string) => {
      copyFileSync(from, join(work, name));
      chmodSync(join(work, name), 0o755);
    };

    beforeAll(async () => {
      chmodSync(outside, 0o755);
      bus = createServer((socket) => {
        connections += 1;
        socket.destroy();
      });
      await new Promise<void>((resolve) => bus.listen(path, resolve));
      chmodSync(path, 0o777);
      execFileSync('cc', [
        '-Wall',
        '-static',
        '-o',
        join(outside, 'probe'),
        join(import.meta.dirname, 'socket-probe.c'),
      ]);
      server = await startPlainUserServer();
      handle = await extension.provision(policySpec('a1'), contextOf(server));
      session = await extension.connect(handle, contextOf(server));
      work = (await run('pwd')).said.trim();
      bring(join(outside, 'probe'), 'probe');
    });

    afterAll(async () => {
      await session?.close();
      await extension.teardown({ stamp: policySpec('a1').stamp, handle }, contextOf(server));
      await extension.close();
      await server?.stop();
      other.kill();
      bus.close();
      rmSync(outside, { recursive: true });
    });

    it('the socket outside answers a program of the same user that is not held back', async () => {
      const plain = [`--reuid=${PLAIN_UID}`, `--regid=${PLAIN_UID}`, '--clear-groups'];
      const { stdout } = spawnSync('setpriv', [...plain, join(outside, 'probe'), path, '1'], {
        encoding: 'utf8',
      });
      expect(stdout).toContain('by_path\t0\n');
      await expect.poll(() => connections).toBe(1);
    });

    it('a unix socket outside cannot be reached, and pairs and the network can', async () => {
      connections = 0;
      const { said } = await run(`./probe ${path} ${other.pid}`);
      const results = Object.fromEntries(
        said
          .trim()
          .split('\n')
          .map((line) => line.split('\t')),
      );
      expect(results).toEqual({ ...HELD, ...ORDINARY });
      expect(connections).toBe(0);
    });

    it('the agents of the sandbox itself cannot be called from inside', async () => {
      const { said } = await run(`./probe ${work}/../f 1; ./probe ${work}/../a 1`);
      expect(said.match(/^by_path\t.*$/gm)).toEqual([`by_path\t${EACCES}`, `by_path\t${EACCES}`]);
    });

    it('a program that runs another one does not get out of the filter', async () => {
      const { said } = await run(`env -i setsid sh -c 'exec ./probe ${path} 1' | grep '^by_path'`);
      expect(said).toBe(`by_path\t${EACCES}\n`);
      expect((await run('grep -E "^Seccomp:" /proc/self/status')).said).toBe('Seccomp:\t2\n');
    });

    it('terminals, files and ports of the sandbox work', async () => {
      writeFileSync(join(work, 'note'), 'kept');
      expect((await run('cat note')).said).toBe('kept');
      expect((await session.files?.stat('note'))?.size).toBe(4);
      const { exit } = await runProgram(session, ['tty'], { terminal: { cols: 80, rows: 24 } });
      expect(exit).toMatchObject({ code: 0 });
    });

    it.runIf(spawnSync('python3', ['-V']).status === 0)(
      'python: pools, pairs and subprocesses work',
      async () => {
        const script = [
          'import multiprocessing, os, socket, subprocess',
          'a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9).decode())',
          'print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())',
          'r, w = multiprocessing.Pipe(); w.send("pipe"); print(r.recv())',
          'print(socket.getaddrinfo("127.0.0.1", 80)[0][4][0], os.path.expanduser("~") != "")',
        ].join('\n');
        writeFileSync(join(work, 'work.py'), script);
        expect(await run('python3 work.py')).toEqual({
          code: 0,
          said: 'pair\nchild\npipe\n127.0.0.1 True\n',
        });
      },
    );

    it('node: a forked child answers over its channel, and a server on TCP is reached', async () => {
      bring(process.execPath, 'node');
      const script = `
      const { fork } = require('node:child_process');
      const { createServer, connect } = require('node:net');
      if (process.argv[2] === 'child') process.send('forked', () => process.disconnect());
      else fork(__filename, ['child']).on('message', (said) => {
        const server = createServer((socket) => socket.end(said)).listen(0, '127.0.0.1', () =>
          connect(server.address().port, '127.0.0.1').on('data', (data) => console.log(String(data))).on('end', () => server.close()));
      });`;
      writeFileSync(join(work, 'work.cjs'), script);
      expect(await run('./node work.cjs')).toEqual({ code: 0, said: 'forked\n' });
    });

    it.runIf(spawnSync('git', ['--version']).status === 0)('git: commits, clones and packs', async () => {
      const me = '-c user.name=a -c user.email=a@b.invalid';
      const { code, said } = await run(
        `git init -q one && cd one && echo x >f && git add f && git ${me} commit -qm first && git gc -q && cd .. && git clone -q one two && cat two/f`,
      );
      expect({ code, said: said.trim().split('\n').at(-1) }).toEqual({ code: 0, said: 'x' });
    });

    it('a host whose kernel takes no filter does not get the level, and the error says why', async () => {
      const real = join(outside, 'agent');
      const lacking = join(outside, 'lacking');
      copyFileSync(agent, real);
      writeFileSync(lacking, `#!/bin/sh\nexec ${join(outside, 'probe')} --no-filters ${real} "$@"\n`);
      for (const program of [real, lacking]) chmodSync(program, 0o755);
      const without = createSshExtension({ agents: { [machine()]: lacking } });
      await expect(without.provision(policySpec('a2'), contextOf(server))).rejects.toMatchObject({
        code: 'SBX_UNSUPPORTED',
        detail: expect.stringContaining('the kernel takes no filter of system calls'),
        extras: { creation: 'not_created', remedy: expect.stringContaining('seccomp') },
      });
      await without.close();
    });
  },
);
