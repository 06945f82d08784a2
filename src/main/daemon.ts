/** The server that the command line starts by itself: on the unix socket, with a record of who runs. */
import { closeSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from './config.ts';
import { serve } from './serve.ts';
import { packageVersion } from './shipped-files.ts';

const config = loadConfig(process.env);
const recordFile = join(config.stateDir, 'daemon.json');

/** Field 22 of proc(5): tells this process from a later one with the same number. */
function processStart(): string | null {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function announce(line: string): void {
  process.stdout.write(line);
  const fd = Number(process.env.SANDBOXER_READY_FD);
  if (!Number.isInteger(fd) || fd < 3) return;
  try {
    writeSync(fd, line);
    closeSync(fd);
  } catch {
    // Whoever started us does not wait any more.
  }
}

const server = await serve({ config, env: process.env });
const record = {
  pid: process.pid,
  version: packageVersion(),
  socket: server.socketPath,
  started_at: new Date().toISOString(),
  process_start: processStart(),
};
writeFileSync(recordFile, `${JSON.stringify(record)}\n`, { mode: 0o600 });

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  rmSync(recordFile, { force: true });
  await server.stop();
  process.exit(0);
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.on('SIGHUP', () => {});

announce(`${JSON.stringify({ ready: true, ...record })}\n`);
