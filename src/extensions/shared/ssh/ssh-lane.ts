import { join } from 'node:path';
import { remoteCommand } from './quote-command.ts';
import { SshProcess } from './ssh-process.ts';

const READY = 'sandboxer-ready';
/** Most output of a login shell before its first command. */
const MOST_GREETING = 65_536;

export interface LanePlace {
  readonly directory: string;
  readonly configFile: string;
  readonly destination: string;
}

/**
 * One connection that commands share (ControlMaster). Its first command waits for the end of its input, so that the connection
 * ends with this process.
 */
export class SshLane {
  readonly #place: LanePlace;
  readonly #name: string;
  readonly #master: SshProcess;
  /** Number of commands that run over it. */
  used = 0;
  /** Whether a command failed on it: running ones may end, no new one begins. */
  isDoubtful = false;
  #commands = 0;
  #lost = false;

  constructor(place: LanePlace, name: string) {
    this.#place = place;
    this.#name = name;
    const wait = remoteCommand(['sh', '-c', `echo ${READY}; exec cat >/dev/null`]);
    this.#master = new SshProcess(
      this.#args(['-o', 'ControlMaster=yes'], wait),
      join(place.directory, `${name}.log`),
    );
    this.#master.unref();
    void this.#master.ended.then(() => {
      this.#lost = true;
    });
  }

  get isLost(): boolean {
    return this.#lost;
  }

  /** Resolves with `null` once commands can run, or with ssh's message. */
  async ready(): Promise<string | null> {
    const greeted = new Promise<null>((resolve) => {
      let seen = '';
      this.#master.stdout.on('data', (chunk: Buffer) => {
        if (seen.length > MOST_GREETING) return;
        seen += chunk.toString('latin1');
        if (seen.includes(READY)) resolve(null);
      });
    });
    const failed = this.#master.ended.then((end) =>
      'said' in end ? end.said : `the login shell ended with ${end.code}: ${this.#master.stderr}`,
    );
    return await Promise.race([greeted, failed]);
  }

  /** Runs a command of the remote shell over it. */
  open(command: string): SshProcess {
    this.#commands += 1;
    const log = join(this.#place.directory, `${this.#name}-${this.#commands}.log`);
    return new SshProcess(this.#args(['-o', 'ControlMaster=no'], command), log);
  }

  /** Ends the connection and the commands that still run over it. */
  async end(): Promise<void> {
    this.#lost = true;
    await this.#master.terminate();
  }

  #args(options: readonly string[], command: string): string[] {
    const { directory, configFile, destination } = this.#place;
    const socket = `ControlPath=${join(directory, this.#name)}`;
    return ['-F', configFile, '-o', socket, ...options, '-T', '--', destination, command];
  }
}
