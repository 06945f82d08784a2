/** The real server on SQLite, with a metered in-process backend. */
import { DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { loadConfig } from '../../src/main/config/config.ts';
import { serve } from '../../src/main/serve.ts';
import { createMemoryExtension } from '../../src/testing/memory/memory-extension.ts';

const server = await serve({
  config: loadConfig(process.env),
  env: process.env,
  extensions: [createMemoryExtension({ price: DEFAULT_PRICE })],
});
process.stdout.write('ready\n');
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
