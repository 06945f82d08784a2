/** Engines that are reached over a network, where nothing of this machine can be mounted. */
import { sshServerMissing, startSshServer } from '../../src/testing/ssh-server.ts';
import { startDockerd, whyNoDockerd } from '../support/dockerd.ts';
import { startTlsEngine } from '../support/tls-engine.ts';
import { describeDocker } from './docker-suite.ts';

describeDocker({
  name: 'TLS, by a relay',
  whyNot: whyNoDockerd(),
  async start() {
    const { engine, url, tls } = await startTlsEngine();
    return { engine, options: { url, tls }, close: () => engine.close() };
  },
});

describeDocker({
  name: 'ssh, by a relay',
  whyNot: whyNoDockerd() ?? sshServerMissing(),
  claims: ['contract', 'lifecycle', 'exec', 'files', 'ports', 'snapshot', 'credentials'],
  async start() {
    const [engine, sshd] = await Promise.all([startDockerd(), startSshServer()]);
    const { user, address, port, hostKey, identityFile } = sshd;
    return {
      engine,
      options: {
        url: `ssh://${user}@${address}:${port}${engine.socket}`,
        ssh: { hostKeys: [hostKey], identityFile },
      },
      close: async () => {
        await sshd.stop();
        await engine.close();
      },
    };
  },
});
