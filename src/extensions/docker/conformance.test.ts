/** Runs the suite on engines of this machine; other ways to an engine and into a container are in tests/conformance. */
import { describeDocker } from '../../../tests/conformance/docker-suite.ts';
import { startDockerd, whyNoDockerd } from '../../../tests/support/dockerd.ts';
import { startPodman, whyNoPodman } from '../../../tests/support/podman.ts';

describeDocker({
  name: 'a socket here, called from inside',
  whyNot: whyNoDockerd(),
  async start() {
    const engine = await startDockerd();
    return { engine, options: { channel: 'call' }, close: () => engine.close() };
  },
});

describeDocker({
  name: 'Podman',
  whyNot: whyNoPodman(),
  claims: [
    'contract',
    'lifecycle',
    'exec',
    'pty',
    'files',
    'pause',
    'snapshot',
    'fork',
    'credentials',
    'resources',
  ],
  async start() {
    const engine = await startPodman();
    return { engine, options: {}, close: () => engine.close() };
  },
});
