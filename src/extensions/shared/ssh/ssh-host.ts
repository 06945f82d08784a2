import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { abortable } from '../../../async/abortable.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Creation } from '../../../contract/values/state.ts';
import type { SshAccess } from '../../../core/ports/host-access.ts';
import { effectiveConfig } from './effective-config.ts';
import { remoteCommand } from './quote-command.ts';
import { makeRunDirectory } from './run-directory.ts';
import type { SshTiming } from './ssh-config.ts';
import { knownHosts, sshConfig } from './ssh-config.ts';
import { sshFailure, sshTimeout } from './ssh-failure.ts';
import type { LanePlace } from './ssh-lane.ts';
import { SshLane } from './ssh-lane.ts';
import type { SshProcess } from './ssh-process.ts';

export interface SshHostOptions extends Partial<SshTiming> {
  /** Parent of the directory of sockets. Default: the system's temporary directory. */
  readonly runRoot?: string;
  /** Commands that share one connection; sshd allows ten by default, and one is this client's own. */
  readonly commandsPerConnection?: number;
  /** Time after which an unused connection is closed. */
  readonly idleMs?: number;
}

export interface RunOptions {
  /** Input of the command; empty when left out. Secrets travel only on this way. */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Limit of each stream; further output is read and dropped. Default: 1 MiB. */
  readonly maxOutputBytes?: number;
  /** `creation` of an error when the connection is lost while the command runs. Default: `maybe_created`. */
  readonly creation?: Creation;
}

export interface RunResult {
  readonly code: number;
  readonly stdout: Buffer;
  /** The last 64 KiB. */
  readonly stderr: string;
  /** Whether standard output was longer than the limit. */
  readonly truncated: boolean;
}

/** A command that runs on the host. */
export interface RemoteProcess {
  readonly process: SshProcess;
  /** Exit code. Rejects when the connection was lost, the signal aborted or the time was up. */
  readonly exit: Promise<number>;
  kill(): void;
}

const DEFAULTS = { connectSeconds: 10, aliveSeconds: 5, commandsPerConnection: 9, idleMs: 60_000 } as const;
const MAX_OUTPUT = 1_048_576;
const RUN_TIMEOUT_MS = 120_000;
/** Time for keys, certificates and the login shell of a busy host. */
const LOGIN_SECONDS = 30;

async function feed(process: SshProcess, stdin: RunOptions['stdin']): Promise<void> {
  const { stdin: target } = process;
  if (stdin === undefined || typeof stdin === 'string' || stdin instanceof Uint8Array) {
    target.end(stdin);
    return;
  }
  for await (const chunk of stdin) {
    if (target.destroyed) return;
    if (target.write(chunk)) continue;
    await new Promise<void>((resolve) => {
      const done = () => {
        target.off('drain', done).off('close', done);
        resolve();
      };
      target.on('drain', done).on('close', done);
    });
  }
  target.end();
}

/**
 * A machine reached by the system's OpenSSH. Commands share connections that are made when needed and closed when idle;
 * a lost one is replaced by the next command.
 */
export class SshHost {
  readonly id: string;
  readonly access: SshAccess;
  readonly #options: SshHostOptions;
  readonly #lanes = new Set<SshLane>();
  #starting: Promise<unknown> = Promise.resolve();
  #place: Promise<LanePlace> | null = null;
  #laneNumber = 0;
  #closed = false;

  constructor(id: string, access: SshAccess, options: SshHostOptions = {}) {
    this.id = id;
    this.access = access;
    this.#options = options;
  }

  /** Runs a command to its end. A code other than 0 is a result, not an error. */
  async run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const { maxOutputBytes = MAX_OUTPUT, timeoutMs = RUN_TIMEOUT_MS } = options;
    const { process, exit, kill } = await this.open(argv, { ...options, timeoutMs });
    const kept: Buffer[] = [];
    let size = 0;
    let truncated = false;
    process.stdout.on('data', (chunk: Buffer) => {
      const piece = chunk.subarray(0, maxOutputBytes - size);
      if (piece.length < chunk.length) truncated = true;
      if (piece.length > 0) kept.push(piece);
      size += piece.length;
    });
    const fed = feed(process, options.stdin).catch((error: unknown) => {
      kill();
      throw error;
    });
    fed.catch(() => {});
    const code = await exit.catch(async (error: unknown) => {
      // If the source of the input failed, that is the reason.
      await Promise.race([fed, Promise.resolve()]);
      throw error;
    });
    return { code, stdout: Buffer.concat(kept), stderr: process.stderr, truncated };
  }

  /** Starts a command whose streams the caller handles: an archive to unpack, the channel to an agent. */
  async open(
    argv: readonly string[],
    options: Pick<RunOptions, 'signal' | 'timeoutMs' | 'creation'> = {},
  ): Promise<RemoteProcess> {
    const { signal, timeoutMs, creation = 'maybe_created' } = options;
    const command = remoteCommand(argv);
    signal?.throwIfAborted();
    const lane = await this.#lane(signal);
    const process = lane.open(command);
    let failure: unknown = null;
    const stop = (reason: unknown) => {
      failure ??= reason;
      process.kill();
    };
    const abort = () => stop(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => stop(sshTimeout(this.id, timeoutMs / 1000, creation)), timeoutMs);
    const exit = process.ended.then((end) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      if ('said' in end && failure === null) lane.isDoubtful = true;
      this.#leave(lane);
      if (failure !== null) throw failure;
      if ('said' in end) throw this.#failure(end.said, creation);
      return end.code;
    });
    exit.catch(() => {});
    return {
      process,
      exit,
      kill: () => stop(new SandboxerError('SBX_CANCELLED', 'The command was ended.', { creation })),
    };
  }

  /** Ends all connections and their commands. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#starting.catch(() => {});
    await Promise.all([...this.#lanes].map((lane) => lane.end()));
    this.#lanes.clear();
    const place = await this.#place?.catch(() => null);
    if (place) await rm(place.directory, { recursive: true, force: true });
  }

  /** Takes a connection with room for one command. Connections are made one after the other: sshd refuses many at once. */
  async #lane(signal?: AbortSignal): Promise<SshLane> {
    const free = this.#freeLane();
    if (free !== null) return free;
    const turn = this.#starting.catch(() => {}).then(() => this.#freeLane() ?? this.#newLane());
    this.#starting = turn;
    if (signal === undefined) return await turn;
    try {
      return await abortable(turn, signal);
    } catch (error) {
      // Releases the connection of a command that will not come.
      turn.then((lane) => this.#leave(lane)).catch(() => {});
      throw error;
    }
  }

  #freeLane(): SshLane | null {
    const most = this.#options.commandsPerConnection ?? DEFAULTS.commandsPerConnection;
    for (const lane of this.#lanes) {
      if (lane.isLost) this.#lanes.delete(lane);
      else if (lane.used < most && !lane.isDoubtful) {
        lane.used += 1;
        return lane;
      }
    }
    return null;
  }

  async #newLane(): Promise<SshLane> {
    if (this.#closed)
      throw new SandboxerError('SBX_UNAVAILABLE', `The connection to ${this.id} was closed.`, {
        creation: 'not_created',
      });
    const place = await this.#placed();
    this.#laneNumber += 1;
    const lane = new SshLane(place, `c${this.#laneNumber}`);
    const said = await this.#within(lane);
    if (said !== null) {
      await lane.end();
      throw said instanceof SandboxerError ? said : this.#failure(said, 'not_created');
    }
    lane.used = 1;
    this.#lanes.add(lane);
    return lane;
  }

  #failure(said: string, afterwards: Creation): SandboxerError {
    // A host on the way may be the one whose key changed.
    const pinned = [this.access, ...this.access.jumps].flatMap(({ hostKeys }) => hostKeys);
    return sshFailure(this.id, said, { afterwards, pinned });
  }

  /** OpenSSH bounds only the dialling, so this bounds the login. */
  async #within(lane: SshLane): Promise<string | SandboxerError | null> {
    const seconds = (this.#options.connectSeconds ?? DEFAULTS.connectSeconds) + LOGIN_SECONDS;
    const late = Promise.withResolvers<SandboxerError>();
    const timer = setTimeout(() => late.resolve(sshTimeout(this.id, seconds, 'not_created')), seconds * 1000);
    try {
      return await Promise.race([lane.ready(), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the options that OpenSSH reaches this host with, the operator's own configuration included. */
  async effectiveConfig(): Promise<ReadonlyMap<string, string>> {
    const { configFile, destination } = await this.#placed();
    return await effectiveConfig(destination, configFile);
  }

  async #placed(): Promise<LanePlace> {
    this.#place ??= this.#prepare();
    return await this.#place.catch((error: unknown) => {
      this.#place = null;
      throw error;
    });
  }

  async #prepare(): Promise<LanePlace> {
    const { connectSeconds, aliveSeconds } = { ...DEFAULTS, ...this.#options };
    const known = knownHosts(this.access);
    const directory = await makeRunDirectory(this.#options.runRoot);
    const knownHostsFile = join(directory, 'known_hosts');
    const configFile = join(directory, 'config');
    try {
      const config = sshConfig(this.access, knownHostsFile, { connectSeconds, aliveSeconds });
      await writeFile(knownHostsFile, known, { mode: 0o600 });
      await writeFile(configFile, config, { mode: 0o600 });
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
    return { directory, configFile, destination: this.access.destination };
  }

  #leave(lane: SshLane): void {
    lane.used -= 1;
    if (lane.used > 0) return;
    const idleMs = lane.isDoubtful ? 0 : (this.#options.idleMs ?? DEFAULTS.idleMs);
    const timer = setTimeout(() => {
      if (lane.used > 0 || !this.#lanes.delete(lane)) return;
      void lane.end();
    }, idleMs);
    timer.unref();
  }
}
