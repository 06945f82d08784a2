import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { CommandFailure } from '../failures/command-failure.ts';
import { compileCacheDir } from '../process/compile-cache.ts';
import type { DaemonFiles } from './daemon-files.ts';
import { SERVER_FLAGS } from './server-flags.ts';

const START_WITHIN_MS = 45_000;
const LARGEST_LOG = 8 * 1_048_576;
const EXCERPT_BYTES = 65_536;
const EXCERPT_LINES = 16;
const READY_FD = 3;

function openLog(path: string): number {
  try {
    if (statSync(path).size > LARGEST_LOG) renameSync(path, `${path}.1`);
  } catch {
    // The log does not exist yet.
  }
  return openSync(path, 'a+', 0o600);
}

/** Returns the log text since `from`; of a long text, its beginning and its end. */
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
    // The daemon runs in another directory than this command.
    ...(env.SANDBOXER_CONFIG ? { SANDBOXER_CONFIG: resolve(env.SANDBOXER_CONFIG) } : {}),
  };
}

interface Announcement {
  readonly ready: boolean;
  readonly code?: string;
  readonly detail?: string;
  readonly remedy?: string;
}

/** Returns the line that the daemon writes when it listens, or knows why it cannot; `null` if the pipe closes without a line. */
function firstLine(pipe: Readable): Promise<string | null> {
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

function startFailure(
  { code, detail, remedy }: Partial<Announcement>,
  excerpt: string,
  files: DaemonFiles,
  version: string,
): CommandFailure {
  const what = `The local server (${version}) did not start`;
  const log = `The whole log is in ${files.log}`;
  if (code !== undefined && remedy !== undefined) {
    return new CommandFailure(`${what}: ${detail}`, { code, remedy: `${remedy} ${log}.` });
  }
  return new CommandFailure(`${what}.${excerpt === '' ? '' : `\n${excerpt}`}`, {
    code: 'SBX_CLI_DAEMON',
    remedy: `${log}; sandboxer doctor may know more.`,
  });
}

/** Starts the daemon in the background and resolves when it listens. */
export async function spawnDaemon(
  files: DaemonFiles,
  env: NodeJS.ProcessEnv,
  version: string,
): Promise<void> {
  const log = openLog(files.log);
  try {
    const { size } = fstatSync(log);
    const program = [process.argv[1] as string, 'daemon-process'];
    const child = spawn(process.execPath, [...SERVER_FLAGS, ...program], {
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
    const line = await Promise.race([firstLine(pipe), failed]);
    clearTimeout(timer);
    pipe.destroy();
    child.unref();
    const announced = line === null ? null : (JSON.parse(line) as Announcement);
    if (announced?.ready !== true) throw startFailure(announced ?? {}, excerptOf(log, size), files, version);
  } finally {
    closeSync(log);
  }
}
