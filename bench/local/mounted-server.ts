/** Server with its state on a file system of its own, mounted in its own namespace: it is gone when the server ends. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const { BENCH_MOUNT: command = 'false' } = process.env;
const server = [
  process.execPath,
  '--disable-warning=ExperimentalWarning',
  join(import.meta.dirname, 'local-server.ts'),
];
const script = `${command} && exec ${server.join(' ')}`;
const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
  stdio: 'inherit',
});
process.once('SIGTERM', () => child.kill('SIGTERM'));
child.once('exit', (code) => process.exit(code ?? 1));
