/** The spawner with address and undefined-behaviour checks, in namespaces of its own where nothing can be written but its base. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const GUARD = ['--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--kill-child', '--mount-proc'];
const SANITIZERS = {
  ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=0:handle_abort=0:log_to_syslog=0',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};

export class SanitizedSpawner {
  readonly base: string;
  readonly #log: string;
  readonly #child;

  private constructor(folder: string, binary: string) {
    this.base = join(folder, 'base');
    this.#log = join(folder, 'spawner.log');
    mkdirSync(this.base, { mode: 0o700 });
    writeFileSync(this.#log, '');
    const words = [`--base=${this.base}`, '--runtime=/bin/false', '--group=fuzz', '--no-cgroups', '--pool=0'];
    const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"';
    const log = openSync(this.#log, 'a');
    this.#child = spawn(
      'unshare',
      [...GUARD, 'sh', '-c', script, folder, binary, ...words, '--linger-ms=600000'],
      { stdio: ['ignore', log, log], env: { PATH: process.env.PATH, ...SANITIZERS } },
    );
    closeSync(log);
  }

  static async start(folder: string, binary: string): Promise<SanitizedSpawner> {
    const spawner = new SanitizedSpawner(folder, binary);
    for (let tries = 0; tries < 1_200 && !existsSync(join(spawner.base, 'spawner.sock')); tries++) {
      if (spawner.#child.exitCode !== null) break;
      await sleep(50);
    }
    return spawner;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get log(): string {
    return readFileSync(this.#log, 'utf8');
  }

  async connect(): Promise<Socket> {
    const socket = connect(join(this.base, 'spawner.sock'));
    await once(socket, 'connect');
    socket.on('error', () => {});
    return socket;
  }

  async stop(): Promise<void> {
    if (this.ended) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
