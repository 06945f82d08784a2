import { Sandboxes } from '../../client/resources/sandboxes.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { ClientOptions } from '../../client/transport/open-transport.ts';
import { openTransport } from '../../client/transport/open-transport.ts';
import { defaultSocketPath, parseServerAddress } from '../../client/transport/server-address.ts';
import type { Transport } from '../../client/transport/transport.ts';
import { daemonFiles, isOutdated } from '../daemon/daemon-files.ts';
import { UsageError } from '../failures/usage-error.ts';
import { Printer } from '../output/printer.ts';
import { Progress } from '../output/progress.ts';
import type { GlobalOptions } from './global-options.ts';
import { DEFAULT_OPTIONS } from './global-options.ts';

/** Run of the command: its global options, the client of the server, the printer. */
export class Invocation {
  readonly env: NodeJS.ProcessEnv;
  #options: GlobalOptions = DEFAULT_OPTIONS;
  #printer: Printer | null = null;
  #client: SandboxerClient | null = null;
  #transport: Transport | null = null;
  /** Exit code of a command that did not fail; a program's exit code, for instance. */
  exitCode = 0;
  /** Called when the output is closed (`sandboxer list | head -1`), or cannot be written. */
  onOutputLost: (error: NodeJS.ErrnoException) => void = ({ code, message }) => {
    if (code === 'EPIPE') process.exit(0);
    this.printer.warn(`the output cannot be written: ${message}`);
    process.exit(1);
  };

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env;
  }

  get options(): GlobalOptions {
    return this.#options;
  }

  /** Called once the command line has been read. */
  configure(options: GlobalOptions): void {
    this.#options = options;
    this.#printer = null;
  }

  get printer(): Printer {
    this.#printer ??= new Printer(this.#options);
    return this.#printer;
  }

  /** Returns whether the server is the one that this command starts by itself. */
  get isLocal(): boolean {
    return this.#options.url === undefined;
  }

  async client(): Promise<SandboxerClient> {
    if (this.#client === null) {
      const { SandboxerClient } = await import('../../client/sandboxer-client.ts');
      this.#client = new SandboxerClient(await this.#clientOptions());
    }
    return this.#client;
  }

  /** Client of the sandboxes alone: enough for `list` and `get`, without the cost of loading the rest. */
  async sandboxes(): Promise<Sandboxes> {
    this.#transport ??= openTransport(await this.#clientOptions());
    return new Sandboxes(this.#transport);
  }

  progress(text: string): Progress {
    const { json, quiet } = this.#options;
    return new Progress(text, !json && !quiet);
  }

  close(): void {
    this.#client?.close();
    this.#transport?.close();
  }

  async #clientOptions(): Promise<ClientOptions> {
    const { url, key, workspace } = this.#options;
    if (url === undefined) return this.#localOptions();
    try {
      parseServerAddress(url);
    } catch (error) {
      throw new UsageError((error as Error).message, 'Give --url or SANDBOXER_URL such an address.');
    }
    return { url, key, workspace, brief: true };
  }

  /** Starts the daemon when no server answers, and replaces one of another version. */
  async #localOptions(): Promise<ClientOptions> {
    const { env } = this;
    const { key, workspace } = this.#options;
    const start = async () => {
      const { ensureDaemon } = await import('../daemon/ensure-daemon.ts');
      await this.progress('Starting the local server').during(ensureDaemon(env));
    };
    if (isOutdated(daemonFiles(env))) await start();
    return { url: `unix:${defaultSocketPath(env)}`, key, workspace, brief: true, onUnreachable: start };
  }
}
