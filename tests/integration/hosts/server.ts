/** The real server as its configuration says, in a process that can be killed. */
import { loadConfig } from '../../../src/main/config/config.ts';
import { serve } from '../../../src/main/serve.ts';

const server = await serve({ config: loadConfig(process.env), env: process.env });
process.stdout.write('ready\n');
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
