import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defaultSocketPath, defaultStateDir } from '../../client/transport/server-address.ts';
import { packageVersion } from '../process/package-version.ts';

export interface DaemonFiles {
  readonly stateDir: string;
  readonly socketPath: string;
  /** Record of the running daemon, written by it and readable by its owner alone. */
  readonly record: string;
  readonly log: string;
  readonly lock: string;
}

export interface DaemonRecord {
  readonly pid: number;
  readonly version: string;
  readonly socket: string;
  readonly started_at: string;
  /** Start time that tells this process from a later one with the same number. */
  readonly process_start: string | null;
}

export function daemonFiles(env: NodeJS.ProcessEnv): DaemonFiles {
  const stateDir = resolve(defaultStateDir(env));
  return {
    stateDir,
    socketPath: resolve(defaultSocketPath(env)),
    record: join(stateDir, 'daemon.json'),
    log: join(stateDir, 'daemon.log'),
    lock: join(stateDir, 'daemon.lock'),
  };
}

export function readRecord(files: DaemonFiles): DaemonRecord | null {
  try {
    const record = JSON.parse(readFileSync(files.record, 'utf8')) as Partial<DaemonRecord>;
    if (!Number.isInteger(record.pid) || (record.pid as number) <= 1 || typeof record.version !== 'string')
      return null;
    return record as DaemonRecord;
  } catch {
    return null;
  }
}

/** Returns whether the running daemon is of another version than this command; cheap enough for every command. */
export function isOutdated(files: DaemonFiles): boolean {
  const record = readRecord(files);
  return record !== null && record.version !== packageVersion();
}
