/** A world for tests of the command: a stub backend, a state directory, and the command itself as a user runs it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { bundleCommand } from '../support/bundle-command.ts';

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string | Buffer;
  readonly env?: Record<string, string>;
}

const ROOT = resolve(import.meta.dirname, '../..');

export interface WorldOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** More settings of the server. */
  readonly config?: Readonly<Record<string, unknown>> & {
    readonly extensions?: Readonly<Record<string, unknown>>;
  };
  /** Instances of the stub by name, each with settings of its own. Default: one. */
  readonly stubs?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export class CliWorld {
  readonly directory: string;
  readonly stateDir: string;
  /** Where the commands run. */
  readonly cwd: string;
  readonly stub: RunningStub;
  readonly env: Record<string, string>;
  /** The file of the command. */
  readonly main: string;

  private constructor(directory: string, stub: RunningStub, main: string, env: WorldOptions['env']) {
    this.directory = directory;
    this.stub = stub;
    this.main = main;
    this.stateDir = join(directory, 'state');
    this.cwd = this.folder('work');
    const { PATH = '', HOME = '' } = process.env;
    this.env = {
      PATH,
      HOME,
      XDG_CACHE_HOME: join(ROOT, 'node_modules/.cache'),
      SANDBOXER_STATE_DIR: this.stateDir,
      SANDBOXER_CONFIG: join(directory, 'config.yaml'),
      SANDBOXER_LOG_LEVEL: 'warn',
      SANDBOXER_LOCAL: '0',
      SANDBOXER_DOCKER: '0',
      ...env,
    };
  }

  static async open(options: WorldOptions = {}): Promise<CliWorld> {
    const directory = mkdtempSync(join(tmpdir(), 'sbx-cli-'));
    const stub = await startStubServer();
    const world = new CliWorld(directory, stub, bundleCommand(), options.env);
    const keyFile = join(directory, 'stub.key');
    writeFileSync(keyFile, stub.key, { mode: 0o600 });
    const stubs = Object.entries(options.stubs ?? { default: {} }).map(([name, settings]) => [
      name,
      { url: stub.url, key_file: keyFile, ...settings },
    ]);
    const config = {
      ...options.config,
      extensions: {
        compose_ssh: { enabled: false },
        saas_stub: Object.fromEntries(stubs),
        ...options.config?.extensions,
      },
    };
    writeFileSync(join(directory, 'config.yaml'), JSON.stringify(config));
    return world;
  }

  /** A directory of its own below the world's. */
  folder(name: string): string {
    const path = join(this.directory, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  start(args: readonly string[], options: RunOptions = {}): ChildProcess {
    return spawn(process.execPath, ['--disable-warning=ExperimentalWarning', this.main, ...args], {
      cwd: this.cwd,
      env: { ...this.env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  }

  async run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
    const child = this.start(args, options);
    child.stdin?.on('error', () => {});
    child.stdin?.end(options.input ?? '');
    return outcomeOf(child);
  }

  async json<T = Record<string, unknown>>(args: readonly string[], options: RunOptions = {}): Promise<T> {
    const { code, stdout, stderr } = await this.run(['--json', ...args], options);
    if (code !== 0) throw new Error(`sandboxer ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** The id of the daemon's process, if there is one. */
  daemonPid(): number | null {
    const record = join(this.stateDir, 'daemon.json');
    return existsSync(record) ? (JSON.parse(readFileSync(record, 'utf8')) as { pid: number }).pid : null;
  }

  async close(): Promise<void> {
    await this.run(['daemon', 'stop']);
    await this.stub.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (part: string) => {
    stdout += part;
  });
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    stderr += part;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
