/**
 * A real sshd on a loopback port, with keys and a certificate authority of its own in a temporary directory, that accepts the
 * user who runs the test. For tests of backends that reach hosts.
 */
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SshAccess } from '../core/ports/host-access.ts';

export interface SshServerOptions {
  /** Default: 127.0.0.1. */
  readonly address?: string;
  /** Command that enters the network namespace where alone the server can be reached: `ip netns exec NAME`. */
  readonly wrapper?: readonly string[];
  /** The user that the server accepts. Default: the user who runs the test. */
  readonly user?: string;
  /** Directory that is removed with the server. */
  readonly scratch?: string;
  /** Environment of every command; values without blanks. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Further lines of sshd_config. */
  readonly config?: readonly string[];
}

export interface CertificateOptions {
  /** Validity of a certificate as ssh-keygen takes it: `+10m`, `-1h:+5s`. */
  readonly validity?: string;
  readonly principals?: readonly string[];
}

const PROGRAMS = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/usr/bin/sshd'];

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns why no server can run here, or `null`. */
export function sshServerMissing(): string | null {
  if (!PROGRAMS.some(isExecutable)) return 'sshd is not installed (Debian package openssh-server)';
  return null;
}

async function freePort(address: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, address, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function answers(port: number, address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, address);
    socket.once('data', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.setTimeout(1000, () => socket.destroy());
  }).then((answered) => answered as boolean);
}

function publicKey(path: string): string {
  return readFileSync(`${path}.pub`, 'utf8').trim().split(' ').slice(0, 2).join(' ');
}

function makeKey(path: string): void {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path]);
}

function childrenOf(pid: number): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8')
        .trim()
        .split(' ')
        .filter(Boolean)
        .map(Number),
    );
  } catch {
    return [];
  }
}

function tree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(tree)];
}

export class SshServer {
  readonly directory: string;
  readonly address: string;
  readonly user: string;
  #port = 0;
  readonly #options: SshServerOptions;
  #child: ChildProcess | null = null;

  constructor(directory: string, options: SshServerOptions) {
    this.directory = directory;
    this.address = options.address ?? '127.0.0.1';
    this.#options = options;
    this.user = options.user ?? userInfo().username;
  }

  get port(): number {
    return this.#port;
  }

  /** The host key to pin, as `<type> <base64>`. */
  get hostKey(): string {
    return publicKey(join(this.directory, 'host_key'));
  }

  /** File of a key that the server accepts. */
  get identityFile(): string {
    return join(this.directory, 'user_key');
  }

  access(overrides: Partial<SshAccess> = {}): SshAccess {
    return {
      destination: this.address,
      port: this.#port,
      user: this.user,
      hostKeys: [this.hostKey],
      identityFile: this.identityFile,
      certificateFile: null,
      jumps: [],
      configFile: null,
      ...overrides,
    };
  }

  /** Makes a key that is accepted only by the certificate beside it: `<name>` and `<name>-cert.pub`. */
  certify(name: string, options: CertificateOptions = {}): { identityFile: string; certificateFile: string } {
    const { validity = '+10m', principals = [this.user] } = options;
    const identityFile = join(this.directory, name);
    rmSync(identityFile, { force: true });
    rmSync(`${identityFile}.pub`, { force: true });
    makeKey(identityFile);
    const ca = join(this.directory, 'user_ca');
    const sign = ['-q', '-s', ca, '-I', name, '-n', principals.join(','), '-V', validity];
    execFileSync('ssh-keygen', [...sign, `${identityFile}.pub`]);
    return { identityFile, certificateFile: `${identityFile}-cert.pub` };
  }

  async start(): Promise<void> {
    const { wrapper = [] } = this.#options;
    if (this.#port === 0) this.#port = await freePort(wrapper.length > 0 ? '127.0.0.1' : this.address);
    const config = join(this.directory, 'sshd_config');
    writeFileSync(config, `${this.#config().join('\n')}\n`);
    const [program = '', ...args] = [
      ...wrapper,
      ...[PROGRAMS.find(isExecutable) ?? 'sshd', '-D', '-e', '-f', config],
    ];
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-4000);
    });
    this.#child = child;
    for (let tries = 0; tries < 200; tries += 1) {
      if (child.exitCode !== null) throw new Error(`sshd did not start: ${said}`);
      if (await answers(this.#port, this.address)) return;
      await sleep(25);
    }
    throw new Error(`sshd does not answer: ${said}`);
  }

  /** Number of open connections. */
  get connections(): number {
    return childrenOf(this.#child?.pid ?? 0).length;
  }

  /** Kills the server and every connection, as a crash of the host would. `start` brings it back on the same port. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child?.pid === undefined || child.exitCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    for (const pid of tree(child.pid)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has ended by itself.
      }
    }
    await exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
    if (this.#options.scratch) rmSync(this.#options.scratch, { recursive: true, force: true });
  }

  #config(): string[] {
    const own = (name: string) => join(this.directory, name);
    return [
      `ListenAddress ${this.address}`,
      `Port ${this.#port}`,
      `HostKey ${own('host_key')}`,
      `AuthorizedKeysFile ${own('authorized_keys')}`,
      `TrustedUserCAKeys ${own('user_ca.pub')}`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      'PermitRootLogin yes',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PubkeyAuthentication yes',
      'MaxStartups 100:30:200',
      'LogLevel ERROR',
      // A home of its own: the user's shell start-up files are no part of a test.
      `SetEnv ${Object.entries({ HOME: own('home'), ...this.#options.environment })
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`,
      ...(this.#options.config ?? []),
    ];
  }
}

export async function startSshServer(options: SshServerOptions = {}): Promise<SshServer> {
  const directory = mkdtempSync(join(tmpdir(), 'sandboxer-sshd-'));
  // sshd requires this directory when it runs as root.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  mkdirSync(join(directory, 'home'));
  for (const name of ['host_key', 'user_key', 'user_ca']) makeKey(join(directory, name));
  writeFileSync(join(directory, 'authorized_keys'), readFileSync(join(directory, 'user_key.pub')));
  // sshd reads the keys of a user as that user.
  if (options.user !== undefined) chmodSync(directory, 0o711);
  const server = new SshServer(directory, options);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}
