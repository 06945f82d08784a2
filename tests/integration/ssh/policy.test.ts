/** `ext.ssh` under policy: a user that is not root, held by Landlock to its directory. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Handle } from '../../../src/core/ports/extension.ts';
import type { SandboxSession } from '../../../src/core/ports/session.ts';
import { createSshExtension } from '../../../src/extensions/ssh/create.ts';
import { runShell } from '../../../src/testing/conformance/run-program.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';
import { startPlainUserServer, whyNoPlainUser } from '../../support/plain-user-server.ts';
import { contextOf, policySpec } from './policy-spec.ts';

const agent = join(import.meta.dirname, '..', '..', '..', 'agent', 'build', 'sandboxer-agent');

describe.skipIf((sshServerMissing() ?? whyNoPlainUser()) !== null)('isolation policy over ssh', () => {
  const extension = createSshExtension({ agents: { [machine()]: agent } });
  const outside = mkdtempSync(join(tmpdir(), 'sandboxer-outside-'));
  let server: SshServer;
  let handle: Handle;
  let session: SandboxSession;
  const run = async (script: string) => {
    const { code, stdout, stderr } = await runShell(session, script);
    return { code, said: `${stdout}${stderr}` };
  };

  beforeAll(async () => {
    writeFileSync(join(outside, 'world-readable'), 'precious', { mode: 0o644 });
    server = await startPlainUserServer();
    handle = await extension.provision(policySpec('a1'), contextOf(server));
    session = await extension.connect(handle, contextOf(server));
  });

  afterAll(async () => {
    await session?.close();
    const report = await extension.teardown({ stamp: policySpec('a1').stamp, handle }, contextOf(server));
    expect(report).toMatchObject({ gone: true });
    await extension.close();
    await server?.stop();
    rmSync(outside, { recursive: true });
  });

  it('the isolation report over ssh names its level', async () => {
    const ready = await extension.waitReady(handle, contextOf(server));
    expect(ready).toMatchObject({ isolation: 'policy' });
  });

  it('a sandbox over ssh runs programs, in a directory and with temporary files of its own', async () => {
    expect(await run('echo x >file && f=$(mktemp) && echo $f && ls')).toMatchObject({
      code: 0,
      said: expect.stringMatching(/^\/.+\/s\/a1\/tmp\/.+\nfile\n$/),
    });
  });

  it('neither reads nor writes outside, whatever the permissions of the user are', async () => {
    expect(await run(`cat ${outside}/world-readable`)).toMatchObject({
      code: 1,
      said: expect.stringContaining('Permission denied'),
    });
    expect((await run(`touch /tmp/by-policy-${process.pid}`)).code).not.toBe(0);
    // The home and the agents of the user that it runs as.
    expect((await run('cd ../../..; ls . bin')).code).not.toBe(0);
    expect((await run('ln -s / root; ls root/tmp')).code).not.toBe(0);
    expect((await run('kill -0 $PPID')).code).toBe(0);
  });

  it('a sandbox over ssh gains no privileges', async () => {
    expect(await run('grep -E "^(NoNewPrivs|CapEff)" /proc/self/status')).toMatchObject({
      said: 'CapEff:\t0000000000000000\nNoNewPrivs:\t1\n',
    });
  });

  it('a sandbox over ssh is refused where root would log in', async () => {
    const asRoot = await startSshServer();
    const work = extension.provision(policySpec('a2'), contextOf(asRoot));
    await expect(work).rejects.toMatchObject({
      code: 'SBX_UNSUPPORTED',
      extras: { creation: 'not_created' },
    });
    await asRoot.stop();
  });
});
