import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailure } from '../failures/command-failure.ts';
import type { DaemonFiles, DaemonRecord } from './daemon-files.ts';
import { readRecord } from './daemon-files.ts';
import { isSameProcess } from './process-identity.ts';

const STOP_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 20;

/** Returns the running daemon, if the recorded process is still the same. */
export function runningDaemon(files: DaemonFiles): DaemonRecord | null {
  const record = readRecord(files);
  return record !== null && isSameProcess(record.pid, record.process_start) ? record : null;
}

/** Stops the daemon and waits for its end. Sandboxes live on: their state is durable. */
export async function stopDaemon(files: DaemonFiles): Promise<DaemonRecord | null> {
  const record = runningDaemon(files);
  if (record === null) return null;
  try {
    process.kill(record.pid, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return record;
    throw error;
  }
  const endsAt = Date.now() + STOP_WITHIN_MS;
  while (isSameProcess(record.pid, record.process_start)) {
    if (Date.now() > endsAt) {
      throw new CommandFailure(`The local server (pid ${record.pid}) does not stop.`, {
        code: 'SBX_CLI_DAEMON',
        remedy: `See ${files.log}; as a last resort: kill -9 ${record.pid}`,
      });
    }
    await sleep(LOOK_EVERY_MS);
  }
  return record;
}
