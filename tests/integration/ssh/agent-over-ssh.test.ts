import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectAgent } from '../../../src/extensions/shared/agent-session/connect-agent.ts';
import { SshHost } from '../../../src/extensions/shared/ssh/ssh-host.ts';
import { forgetAgent, uploadAgent } from '../../../src/extensions/shared/ssh/upload-agent.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';
import { runProgram } from '../agent/programs.ts';
import { agentBinary } from '../agent/running-agent.ts';

const missing = sshServerMissing();

describe.skipIf(missing !== null)('the agent on a host', () => {
  let server: SshServer;
  let host: SshHost;
  let base: string;

  beforeAll(async () => {
    server = await startSshServer();
    host = new SshHost('h1', server.access());
    base = mkdtempSync(join(tmpdir(), 'sandboxer-remote-'));
  });
  afterAll(async () => {
    await host.close();
    await server.stop();
    rmSync(base, { recursive: true, force: true });
  });

  const binaries = () => ({ [machine()]: agentBinary() });

  it('the agent on a host is installed once, whole, under the name of its content', async () => {
    const directory = join(base, "it's here");
    const paths = await Promise.all([1, 2, 3].map(() => uploadAgent(host, directory, binaries())));
    expect(new Set(paths).size).toBe(1);
    expect(readdirSync(directory)).toHaveLength(1);
    expect(readFileSync(paths[0] as string).equals(readFileSync(agentBinary()))).toBe(true);
    rmSync(directory, { recursive: true });
    forgetAgent(host, directory);
    expect(existsSync(await uploadAgent(host, directory, binaries()))).toBe(true);
  });

  it('an agent is refused for another processor and where it cannot be written', async () => {
    await expect(uploadAgent(host, join(base, 'other'), { s390x: agentBinary() })).rejects.toMatchObject({
      code: 'SBX_UNSUPPORTED',
    });
    await expect(uploadAgent(host, '/proc/nowhere', binaries())).rejects.toMatchObject({
      code: 'SBX_EXTENSION_FAILED',
      extras: { creation: 'not_created' },
    });
  });

  it('the agent on a host answers through a channel', async () => {
    const agent = await uploadAgent(host, base, binaries());
    chmodSync(base, 0o755);
    const socket = join(base, 's');
    const user = String(process.getuid?.() ?? 0);
    const start = await host.run([agent, '--listen', socket, '--daemon', '--user', user, '--cwd', base]);
    expect(start.code).toBe(0);
    const relay = await host.open([agent, '--relay', socket]);
    const session = await connectAgent(relay.process.duplex());
    const input = Buffer.alloc(3_000_000, 'abc');
    expect((await runProgram(session, ['cat'], { input })).stdout.equals(input)).toBe(true);
    expect((await runProgram(session, ['pwd'])).stdout.toString().trim()).toBe(
      execFileSync('realpath', [base]).toString().trim(),
    );
    process.kill(session.info.pid, 'SIGTERM');
    await session.ended;
    await relay.exit;
  });
});
