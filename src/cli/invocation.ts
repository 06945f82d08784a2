import { SandboxerClient } from '../client/sandboxer-client.ts';
import { defaultSocketPath, parseServerAddress } from '../client/server-address.ts';
import { daemonFiles, isOutdated } from './daemon/daemon-files.ts';
import type { GlobalOptions } from './global-options.ts';
import { DEFAULT_OPTIONS } from './global-options.ts';
import { Printer } from './output/printer.ts';
import { Progress } from './output/progress.ts';
import { UsageError } from './usage-error.ts';

/** One run of the command: what was asked for globally, the way to the server, the way to the user. */
export class Invocation {
  readonly env: NodeJS.ProcessEnv;
  #options: GlobalOptions = DEFAULT_OPTIONS;
  #printer: Printer | null = null;
  #client: SandboxerClient | null = null;
  /** What the command ends with when nothing failed; a program's exit code, for instance. */
  exitCode = 0;
  /** Nobody reads the output any more: `sandboxer list | head -1`. */
  onOutputClosed: () => void = () => process.exit(0);

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env;
  }

  get options(): GlobalOptions {
    return this.#options;
  }

  /** Once the command line has been read. */
  configure(options: GlobalOptions): void {
    this.#options = options;
    this.#printer = null;
  }

  get printer(): Printer {
    this.#printer ??= new Printer(this.#options);
    return this.#printer;
  }

  /** Whether the server is the one that this command starts by itself. */
  get isLocal(): boolean {
    return this.#options.url === undefined;
  }

  async client(): Promise<SandboxerClient> {
    this.#client ??= await this.#connect();
    return this.#client;
  }

  progress(text: string): Progress {
    const { json, quiet } = this.#options;
    return new Progress(text, !json && !quiet);
  }

  close(): void {
    this.#client?.close();
  }

  async #connect(): Promise<SandboxerClient> {
    const { url, key, workspace } = this.#options;
    if (url === undefined) return this.#connectLocally();
    try {
      parseServerAddress(url);
    } catch (error) {
      throw new UsageError((error as Error).message, 'Give --url or SANDBOXER_URL such an address.');
    }
    return new SandboxerClient({ url, key, workspace });
  }

  /** The daemon is started when nobody answers, and replaced when it is of another version. */
  async #connectLocally(): Promise<SandboxerClient> {
    const { env } = this;
    const { key, workspace } = this.#options;
    const start = async () => {
      const { ensureDaemon } = await import('./daemon/ensure-daemon.ts');
      await this.progress('Starting the local server').during(ensureDaemon(env));
    };
    if (isOutdated(daemonFiles(env))) await start();
    const url = `unix:${defaultSocketPath(env)}`;
    return new SandboxerClient({ url, key, workspace, onUnreachable: start });
  }
}
