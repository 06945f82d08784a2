/** Real server with ext.local, in a process of its own; its spawner ends with it. */
import { loadConfig } from '../../src/main/config/config.ts';
import { serve } from '../../src/main/serve.ts';
import { answerWithMemory } from './collected-memory.ts';
import { retireSpawner } from './retire-spawner.ts';

const config = loadConfig(process.env);
const server = await serve({ config, env: process.env });
answerWithMemory(config.stateDir);
process.stdout.write('ready\n');
process.once('SIGTERM', async () => {
  await server.stop();
  await retireSpawner(config.stateDir);
  process.exit(0);
});
