/** The real server with ext.local where it can run, and with the in-process backend for floods of creates. */
import { loadConfig } from '../../src/main/config/config.ts';
import { serve } from '../../src/main/serve.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';
import { retireSpawner } from '../local/retire-spawner.ts';

const config = loadConfig(process.env);
const server = await serve({ config, env: process.env, extensions: [createMemoryExtension()] });
process.stdout.write('ready\n');
process.once('SIGTERM', async () => {
  await server.stop();
  await retireSpawner(config.stateDir);
  process.exit(0);
});
