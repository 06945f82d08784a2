import { startDockerd, whyNoDockerd } from '../support/dockerd.ts';
import { describeDocker } from './docker-suite.ts';

describeDocker({
  name: 'without the agent',
  whyNot: whyNoDockerd(),
  async start() {
    const engine = await startDockerd();
    return { engine, options: { channel: 'exec' }, close: () => engine.close() };
  },
});
