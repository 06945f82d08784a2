/** Servers under test run in a process of their own, so that client and server share no event loop. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVER_FLAGS } from '../../src/cli/daemon/server-flags.ts';

export interface ChildServer {
  readonly dir: string;
  readonly socketPath: string;
  readonly process: ChildProcess;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export function temporaryDir(): string {
  return mkdtempSync(join(tmpdir(), 'sandboxer-test-'));
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

/** Most of a start is compiling; a server that was stopped in order leaves its work here for the next. */
const COMPILE_CACHE = join(import.meta.dirname, '..', '..', '.build', 'compile-cache');

/** Starts `file` and resolves when it printed its first line. */
export async function startChild(
  file: string,
  dir: string,
  env: Record<string, string> = {},
): Promise<ChildServer> {
  const socketPath = join(dir, 'server.sock');
  const child = spawn(process.execPath, [...SERVER_FLAGS, file], {
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      SANDBOXER_STATE_DIR: dir,
      SANDBOXER_SOCKET: socketPath,
      SANDBOXER_LOG_LEVEL: 'silent',
      SANDBOXER_LOCAL: '0',
      SANDBOXER_DOCKER: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code} before it was ready`)));
  });
  child.removeAllListeners('exit');
  child.stdout?.resume();
  return {
    dir,
    socketPath,
    process: child,
    async kill() {
      child.kill('SIGKILL');
      await ended(child);
    },
    async stop() {
      child.kill('SIGTERM');
      await ended(child);
    },
  };
}

export function removeDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}
