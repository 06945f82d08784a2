/** Engines that are reached over TLS and over ssh: who is let in, who is not, and what a lost connection is. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SshServer } from '../../../src/testing/ssh-server.ts';
import { sshServerMissing, startSshServer } from '../../../src/testing/ssh-server.ts';
import { DockerWorld, output } from '../../support/docker-world.ts';
import type { Dockerd } from '../../support/dockerd.ts';
import { startDockerd, whyNoDockerd } from '../../support/dockerd.ts';
import type { TlsEngine } from '../../support/tls-engine.ts';
import { startTlsEngine } from '../../support/tls-engine.ts';

const whyNot = whyNoDockerd() ?? sshServerMissing();

async function probe(engine: Dockerd, options: ConstructorParameters<typeof DockerWorld>[1]) {
  const world = new DockerWorld(engine, options);
  await world.open();
  const health = await world.extension.probe(world.context);
  await world.extension.close();
  return health;
}

describe.skipIf(whyNot !== null)(
  `an engine behind TLS${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let tls: TlsEngine;
    beforeAll(async () => {
      tls = await startTlsEngine();
    });
    afterAll(async () => tls?.engine.close());

    it('an engine behind TLS is used with a known certificate, and with no other', async () => {
      const { engine, url } = tls;
      expect(await probe(engine, { url, tls: tls.tls })).toMatchObject({ status: 'healthy' });
      const refused = await probe(engine, { url, tls: tls.strange });
      expect(refused.status).toBe('unhealthy');
      const { ca_file: _, ...unchecked } = tls.tls;
      const unknown = await probe(engine, { url, tls: unchecked });
      expect(unknown.status).toBe('unhealthy');
      expect(unknown.detail).toMatch(/certificate|issuer/);
    });
  },
);

describe.skipIf(whyNot !== null)(
  `an engine over ssh${whyNot ? ` (${whyNot})` : ''}`,
  { timeout: 120_000 },
  () => {
    let engine: Dockerd;
    let sshd: SshServer;
    beforeAll(async () => {
      [engine, sshd] = await Promise.all([startDockerd(), startSshServer()]);
    });
    afterAll(async () => {
      await sshd?.stop();
      await engine?.close();
    });

    const url = () => `ssh://${sshd.user}@${sshd.address}:${sshd.port}${engine.socket}`;
    const ssh = () => ({ hostKeys: [sshd.hostKey], identityFile: sshd.identityFile });

    it('an engine over ssh is reached by a key that is pinned, or that the operator has accepted, and by no other', async () => {
      const strange = { ...ssh(), hostKeys: [`${sshd.hostKey.split(' ')[0]} AAAAC3NzaC1lZDI1NTE5AAAAIA==`] };
      const refused = await probe(engine, { url: url(), ssh: strange });
      expect(refused.status).not.toBe('healthy');
      const known = join(sshd.directory, 'known_hosts');
      const config = join(sshd.directory, 'operator_config');
      writeFileSync(known, '');
      writeFileSync(config, `UserKnownHostsFile ${known}\nGlobalKnownHostsFile /dev/null\n`);
      const own = { identityFile: sshd.identityFile, configFile: config };
      const unknown = await probe(engine, { url: url(), ssh: own });
      expect(unknown.detail).toContain('extensions.docker.ssh.host_keys');
      writeFileSync(known, `[${sshd.address}]:${sshd.port} ${sshd.hostKey}\n`);
      expect(await probe(engine, { url: url(), ssh: own })).toMatchObject({ status: 'healthy' });
    });

    it('a lost connection is an error of its own, and the sandbox is found again', async () => {
      const world = new DockerWorld(engine, { url: url(), ssh: ssh() });
      await world.open();
      const living = await world.establish();
      await output(living.session, 'echo before > kept');
      const running = output(living.session, 'sleep 60');
      running.catch(() => {});
      await sshd.kill();
      await expect(running).rejects.toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
      await expect(world.extension.connect(living.handle, world.context)).rejects.toMatchObject({
        code: expect.stringMatching(/^SBX_/),
      });
      await sshd.start();
      const session = await world.extension.connect(living.handle, world.context);
      expect(await output(session, 'cat kept')).toBe('before');
      await world.end(living);
      expect(await engine.docker('ps', '-aq')).toBe('');
      await world.extension.close();
      await expect.poll(() => sshd.connections, { timeout: 60_000 }).toBe(0);
    });
  },
);
