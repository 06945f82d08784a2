import { watch } from 'node:fs';
import { createConnection } from 'node:net';
import { makeOwnDirectory } from '../../trees/make-directory.ts';
import { CommandFailure } from '../failures/command-failure.ts';
import { packageVersion } from '../process/package-version.ts';
import type { DaemonFiles } from './daemon-files.ts';
import { daemonFiles, isOutdated } from './daemon-files.ts';
import { spawnDaemon } from './spawn-daemon.ts';
import { releaseLock, takeLock } from './start-lock.ts';
import { runningDaemon, stopDaemon } from './stop-daemon.ts';

const PATIENCE_MS = 60_000;
/** Interval of polling, beside the watch: for file systems without events, and for holders that died. */
const LOOK_AGAIN_MS = 250;
/** Limit of the kernel on the path of a unix socket. */
const LONGEST_SOCKET_PATH = process.platform === 'linux' ? 107 : 103;

export function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Resolves when something changed in the state directory, or after a while. */
function nextChange(directory: string, withinMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      watcher?.close();
      resolve();
    };
    const timer = setTimeout(done, withinMs);
    let watcher: ReturnType<typeof watch> | null = null;
    try {
      watcher = watch(directory, done);
      watcher.on('error', done);
    } catch {
      // The timer is enough then.
    }
  });
}

function prepare(files: DaemonFiles): void {
  if (Buffer.byteLength(files.socketPath) > LONGEST_SOCKET_PATH) {
    throw new CommandFailure(`The path of the socket is too long: ${files.socketPath}`, {
      code: 'SBX_CLI_DAEMON',
      remedy: 'Set SANDBOXER_SOCKET to a shorter path.',
    });
  }
  try {
    makeOwnDirectory(files.stateDir);
  } catch (error) {
    throw new CommandFailure(
      `The state directory ${files.stateDir} cannot be made or written to: ${(error as NodeJS.ErrnoException).code}`,
      {
        code: 'SBX_CLI_DAEMON',
        remedy: 'Set SANDBOXER_STATE_DIR to a directory that you can write to.',
        cause: error,
      },
    );
  }
}

/** The daemon runs and listens no more: its database is free when it is gone. */
async function isLeaving(files: DaemonFiles): Promise<boolean> {
  const record = runningDaemon(files);
  return record !== null && !(await answers(record.socket));
}

/** Resolves when a daemon of this version answers. Of several commands at the same time, one starts it. */
export async function ensureDaemon(env: NodeJS.ProcessEnv): Promise<void> {
  const files = daemonFiles(env);
  prepare(files);
  const endsAt = Date.now() + PATIENCE_MS;
  while (Date.now() < endsAt) {
    const change = nextChange(files.stateDir, LOOK_AGAIN_MS);
    if (!isOutdated(files) && (await answers(files.socketPath))) return;
    if (takeLock(files.lock)) {
      try {
        if (!isOutdated(files) && (await answers(files.socketPath))) return;
        if (isOutdated(files) || (await isLeaving(files))) await stopDaemon(files);
        await spawnDaemon(files, env, packageVersion());
        return;
      } finally {
        releaseLock(files.lock);
      }
    }
    await change;
  }
  throw new CommandFailure('The local server did not come up in time.', {
    code: 'SBX_CLI_DAEMON',
    remedy: `See ${files.log}, or run sandboxer doctor.`,
  });
}
