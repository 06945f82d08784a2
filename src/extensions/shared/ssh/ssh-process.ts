import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { Duplex } from 'node:stream';
import { OWN_255 } from './quote-command.ts';

/** Variables that ssh needs: no others leave this process. */
const PASSED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SSH_AUTH_SOCK', 'TMPDIR'];
const STDERR_KEPT = 65_536;
const GRACE_MS = 2_000;

/** End of a run of the ssh command: by the remote command's own status, or because ssh itself failed. */
export type SshEnd = { readonly code: number } | { readonly said: string };

export function sshEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    PASSED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

/** One run of the ssh command. Its own messages go to a file, so that they are never taken for the command's. */
export class SshProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Never rejects. */
  readonly ended: Promise<SshEnd>;
  readonly #child: ChildProcess;
  #stderr = Buffer.alloc(0);

  constructor(args: readonly string[], logFile: string) {
    this.#child = spawn('ssh', ['-E', logFile, ...args], { stdio: 'pipe', env: sshEnvironment() });
    this.stdin = this.#child.stdin as Writable;
    this.stdout = this.#child.stdout as Readable;
    // A command that does not read its input is no error here.
    this.stdin.on('error', () => {});
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk]).subarray(-STDERR_KEPT);
    });
    this.ended = this.#end(logFile);
  }

  /** Calls `take` with the command's standard error, besides the part that is kept. */
  onErrorOutput(take: (chunk: Buffer) => void): void {
    this.#child.stderr?.on('data', take);
  }

  /** Pauses both outputs until `resume`. */
  pause(): void {
    this.stdout.pause();
    this.#child.stderr?.pause();
  }

  resume(): void {
    this.stdout.resume();
    this.#child.stderr?.resume();
  }

  /** The last part of the command's standard error. */
  get stderr(): string {
    return this.#stderr.toString('utf8');
  }

  /** Returns standard input and output as one stream. */
  duplex(): Duplex {
    return Duplex.from({ readable: this.stdout, writable: this.stdin });
  }

  /** Kills it. Its streams end at once: a shared connection would keep them open until the command ends. */
  kill(): void {
    this.#child.kill('SIGKILL');
    for (const stream of [this.#child.stdout, this.#child.stderr, this.#child.stdin]) stream?.destroy();
  }

  /** Ends it after a moment to clean up. */
  async terminate(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.kill(), GRACE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  /** Lets this process end before it. */
  unref(): void {
    this.#child.unref();
    for (const stream of this.#child.stdio) (stream as Socket | null)?.unref();
  }

  async #end(logFile: string): Promise<SshEnd> {
    const status = await new Promise<number | string>((resolve) => {
      this.#child.once('error', (error) => resolve(`ssh cannot be started: ${error.message}`));
      this.#child.once('close', (code, signal) => resolve(code ?? `ssh was ended by ${signal}`));
    });
    const said = status === 0 ? '' : await readFile(logFile, 'utf8').catch(() => '');
    await rm(logFile, { force: true }).catch(() => {});
    if (typeof status === 'string') return { said: said || status };
    if (status !== 255) return { code: status };
    if (!this.stderr.endsWith(OWN_255)) return { said: said || 'the connection was lost' };
    this.#stderr = this.#stderr.subarray(0, -OWN_255.length);
    return { code: status };
  }
}
