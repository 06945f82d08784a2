import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { CommandFailure } from '../command-failure.ts';
import { compileCacheDir } from '../compile-cache.ts';
import type { DaemonFiles } from './daemon-files.ts';

/** Beside us, as `.ts` in a checkout and as `.js` in a package. */
const PROGRAM = fileURLToPath(new URL(`../../main/daemon${extname(import.meta.url)}`, import.meta.url));
const START_WITHIN_MS = 45_000;
const LARGEST_LOG = 8 * 1_048_576;
const EXCERPT_BYTES = 65_536;
const EXCERPT_LINES = 16;
const READY_FD = 3;

function openLog(path: string): number {
  try {
    if (statSync(path).size > LARGEST_LOG) renameSync(path, `${path}.1`);
  } catch {
    // There is none yet.
  }
  return openSync(path, 'a+', 0o600);
}

/** What was written to the log since `from`; of much, how it began and how it ended. */
function excerptOf(log: number, from: number): string {
  const { size } = fstatSync(log);
  const buffer = Buffer.alloc(Math.min(size - from, EXCERPT_BYTES));
  readSync(log, buffer, 0, buffer.length, from);
  const lines = buffer.toString('utf8').trimEnd().split('\n');
  if (lines.length <= EXCERPT_LINES) return lines.join('\n');
  return [...lines.slice(0, EXCERPT_LINES / 2), '…', ...lines.slice(-EXCERPT_LINES / 2)].join('\n');
}

function daemonEnv(files: DaemonFiles, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { SANDBOXER_URL: _url, SANDBOXER_KEY: _key, ...rest } = env;
  return {
    ...rest,
    SANDBOXER_STATE_DIR: files.stateDir,
    SANDBOXER_SOCKET: files.socketPath,
    SANDBOXER_READY_FD: String(READY_FD),
    NODE_COMPILE_CACHE: compileCacheDir(env),
    // It runs in another directory than this command.
    ...(env.SANDBOXER_CONFIG ? { SANDBOXER_CONFIG: resolve(env.SANDBOXER_CONFIG) } : {}),
  };
}

/** The daemon writes one line to a pipe when it listens; the pipe closes without it when it fails. */
function readyLine(pipe: Readable): Promise<string | null> {
  return new Promise((settle) => {
    let text = '';
    pipe.setEncoding('utf8');
    pipe.on('data', (part: string) => {
      text += part;
      if (text.includes('\n')) settle(text);
    });
    pipe.on('close', () => settle(text.includes('\n') ? text : null));
    pipe.on('error', () => settle(null));
  });
}

/** Starts the daemon on its own and resolves when it listens. */
export async function spawnDaemon(
  files: DaemonFiles,
  env: NodeJS.ProcessEnv,
  version: string,
): Promise<void> {
  const log = openLog(files.log);
  try {
    const { size } = fstatSync(log);
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM], {
      detached: true,
      cwd: files.stateDir,
      stdio: ['ignore', log, log, 'pipe'],
      env: daemonEnv(files, env),
    });
    const failed = new Promise<null>((settle) => child.once('error', () => settle(null)));
    const pipe = child.stdio[READY_FD] as Readable;
    const timer = setTimeout(() => {
      child.kill('SIGTERM');
      pipe.destroy();
    }, START_WITHIN_MS);
    const line = await Promise.race([readyLine(pipe), failed]);
    clearTimeout(timer);
    pipe.destroy();
    child.unref();
    if (line !== null) return;
    const excerpt = excerptOf(log, size);
    throw new CommandFailure(
      `The local server (${version}) did not start.${excerpt === '' ? '' : `\n${excerpt}`}`,
      {
        code: 'SBX_CLI_DAEMON',
        remedy: `The whole log is in ${files.log}; sandboxer doctor may know more.`,
      },
    );
  } finally {
    closeSync(log);
  }
}
