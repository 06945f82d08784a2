import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';

const KEPT_TEXT = 4_000;
const LOOK_MS = 250;

export interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** The most bytes that all files below `cwd` may have together. */
  readonly mostBytes: number;
}

async function sizeOf(directory: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) total += await sizeOf(path);
    else total += (await lstat(path).catch(() => null))?.size ?? 0;
  }
  return total;
}

/** Returns the last lines of git, without advice for a person at a terminal, and without paths of our own disk. */
function reasonOf(text: string, cwd: string): string {
  const lines = text
    .replaceAll(cwd, '…')
    .split('\n')
    .filter((line) => /^(?:fatal|error|remote|ssh|Host key|.*denied)/i.test(line))
    .map((line) => line.replace(/^(?:fatal|error): /, ''));
  return lines.slice(-3).join(' ').slice(0, 500) || 'git failed without a reason';
}

interface Sign {
  readonly pattern: RegExp;
  readonly code: ErrorCode;
  readonly remedy: string;
}

/** Messages of git about a request that would fail the next time, too. */
const CALLERS_FAULT: readonly Sign[] = [
  {
    pattern: /couldn't find remote ref|not our ref|unadvertised object|unknown revision/i,
    code: 'SBX_NOT_FOUND',
    remedy: 'Name a branch, tag or commit that the repository has; without one its HEAD is taken.',
  },
  {
    pattern:
      /repository .*not found|does not appear to be a git repository|returned error: (?:404|410)|project you were looking for/i,
    code: 'SBX_NOT_FOUND',
    remedy:
      'Correct the address. A repository that is not public needs a credential: {"git": …, "credential": …}.',
  },
  {
    pattern:
      /authentication failed|could not read (?:username|password)|returned error: (?:401|403)|permission denied/i,
    code: 'SBX_REF_REFUSED',
    remedy: 'Give a credential that may read the repository: {"git": …, "credential": …}.',
  },
];

function fetchFailed(reason: string): SandboxerError {
  const sign = CALLERS_FAULT.find(({ pattern }) => pattern.test(reason));
  const remedy = sign === undefined ? {} : { remedy: sign.remedy };
  return new SandboxerError(sign?.code ?? 'SBX_FETCH_FAILED', `git: ${reason}`, {
    creation: 'not_created',
    ...remedy,
  });
}

/** Runs git once, in a process group of its own. The group is ended when it takes too long or writes too much. */
class GitRun {
  readonly #options: RunOptions;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #ended: Promise<readonly [number | null]>;
  #stderr = '';
  #failure: unknown = null;

  constructor(args: readonly string[], options: RunOptions) {
    options.signal.throwIfAborted();
    this.#options = options;
    const { cwd, env } = options;
    this.#child = spawn('git', args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#ended = once(this.#child, 'close') as Promise<[number | null]>;
    this.#ended.catch(() => {});
    this.#child.stderr.on('data', (data: Buffer) => {
      this.#stderr = (this.#stderr + data.toString('utf8')).slice(-KEPT_TEXT);
    });
  }

  get stdout(): Readable {
    return this.#child.stdout;
  }

  end(failure: unknown): void {
    this.#failure ??= failure;
    const { pid } = this.#child;
    try {
      if (pid !== undefined && this.#child.exitCode === null) process.kill(-pid, 'SIGKILL');
    } catch {}
    this.#child.stdout.destroy();
  }

  /** Resolves when it ended well. */
  async finished(): Promise<void> {
    const { signal, cwd, mostBytes } = this.#options;
    const onAbort = () => this.end(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const look = setInterval(() => {
      void sizeOf(cwd).then((size) => {
        if (size > mostBytes) this.end(fetchFailed(`the repository has more than ${mostBytes} bytes`));
      });
    }, LOOK_MS);
    try {
      const [code] = await this.#ended;
      if (this.#failure !== null) throw this.#failure;
      if (code !== 0) throw fetchFailed(reasonOf(this.#stderr, cwd));
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      throw missing ? fetchFailed('it is not installed on the server') : error;
    } finally {
      clearInterval(look);
      signal.removeEventListener('abort', onAbort);
    }
  }
}

/** Returns the whole output: for small answers. */
export async function runGit(args: readonly string[], options: RunOptions): Promise<string> {
  const run = new GitRun(args, options);
  let text = '';
  run.stdout.on('data', (data: Buffer) => {
    text = (text + data.toString('utf8')).slice(0, KEPT_TEXT);
  });
  await run.finished();
  return text;
}

/** Yields the output as it comes. A reader that stops early ends the process. */
export async function* streamGit(args: readonly string[], options: RunOptions): AsyncGenerator<Uint8Array> {
  const run = new GitRun(args, options);
  const finished = run.finished();
  finished.catch(() => {});
  try {
    for await (const part of run.stdout) yield part as Buffer;
    await finished;
  } finally {
    run.end(fetchFailed('its output was not read to the end'));
    await finished.catch(() => {});
  }
}
