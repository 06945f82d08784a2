/** Server that the command line starts by itself: on the unix socket, with a record of its process. */
import { closeSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxerError } from '../contract/errors/errors.ts';
import { loadConfig } from './config/config.ts';
import { whenIdle } from './process/idle-watch.ts';
import { packageVersion } from './process/shipped-files.ts';
import type { RunningServer } from './serve.ts';
import { serve } from './serve.ts';

/** Field 22 of proc(5): tells this process from a later one with the same number. */
function processStart(): string | null {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

/** Writes one line to the starting process, and to the log. */
function announce(env: NodeJS.ProcessEnv, message: Readonly<Record<string, unknown>>): void {
  const line = `${JSON.stringify(message)}\n`;
  process.stdout.write(line);
  const fd = Number(env.SANDBOXER_READY_FD);
  if (!Number.isInteger(fd) || fd < 3) return;
  try {
    writeSync(fd, line);
    closeSync(fd);
  } catch {
    // The starting process does not wait any more.
  }
}

function stopSignal(): Promise<void> {
  process.on('SIGHUP', () => {});
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}

function idle(server: RunningServer, stopAfterMs: number | null): Promise<void> {
  if (stopAfterMs === null) return new Promise(() => {});
  return whenIdle(server.callers, server.control.store, stopAfterMs);
}

/** Serves until a signal or an idle time ends the daemon. An error with a known remedy is announced, too. */
export async function runDaemon(env: NodeJS.ProcessEnv): Promise<void> {
  const stopped = stopSignal();
  try {
    const config = loadConfig(env);
    const server = await serve({ config, env });
    const recordFile = join(config.stateDir, 'daemon.json');
    const record = {
      pid: process.pid,
      version: packageVersion(),
      socket: server.socketPath,
      started_at: new Date().toISOString(),
      process_start: processStart(),
    };
    writeFileSync(recordFile, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    announce(env, { ready: true, ...record });
    await Promise.race([stopped, idle(server, config.daemon.stop_after)]);
    await server.stop();
    // Last step: until then, another start of the daemon waits for this one.
    rmSync(recordFile, { force: true });
  } catch (error) {
    if (error instanceof SandboxerError) {
      const { code, detail, remedy } = error;
      announce(env, { ready: false, code, detail, remedy });
    }
    throw error;
  }
}
