/**
 * Session through the Engine's own exec API, for images that cannot take the agent. Each program costs the engine three requests
 * and a runtime's start. Background programs, watches and connections are not available.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Signal, TerminalSize } from '../../../contract/sandboxes/exec.ts';
import type { ResolvedSecret } from '../../../core/ports/extension.ts';
import type {
  AbortableOptions,
  SandboxFiles,
  SandboxSession,
  SpawnSpec,
} from '../../../core/ports/session.ts';
import type { EngineClient } from '../engine/engine-client.ts';
import { BACKEND, failed, lost } from '../engine/engine-error.ts';
import { ExecState } from '../engine/engine-replies.ts';
import { startExec } from '../engine/exec-stream.ts';
import { ExecFiles } from './exec-files.ts';
import { ExecProcess } from './exec-process.ts';
import { ENVIRONMENT, MARK, SIGNAL, START } from './exec-scripts.ts';

const SHELL = '/bin/sh';
/** Wait for the engine to report the exit code, after the stream has ended. */
const TOLD_MS = 10_000;
const LOOK_MS = 20;
const KILL_PASSES = '20';

function unsupported(detail: string, field: string): SandboxerError {
  return new SandboxerError('SBX_UNSUPPORTED', detail, {
    backend: BACKEND,
    field,
    remedy: 'Use an image for the architecture of the server’s agent.',
  });
}

export class ExecSession implements SandboxSession {
  readonly files: SandboxFiles;
  readonly #client: EngineClient;
  readonly #container: string;
  readonly #work: string;
  #closed = false;

  constructor(client: EngineClient, container: string, work: string) {
    this.#client = client;
    this.#container = container;
    this.#work = work;
    this.files = new ExecFiles((script, args, stdin) => this.#shell(script, args, stdin));
  }

  get isLost(): boolean {
    return this.#closed;
  }

  async spawn(spec: SpawnSpec, options: AbortableOptions = {}): Promise<ExecProcess> {
    if (spec.background) throw unsupported('Nothing can be left running in this image.', 'background');
    if (spec.user !== null) throw unsupported('Programs run as the user of the image.', 'user');
    options.signal?.throwIfAborted();
    const { rows = '', cols = '' } = spec.terminal ?? {};
    const place = spec.cwd ?? '';
    const command = [SHELL, '-c', START, 'sh', place, String(rows), String(cols), ...spec.argv];
    const terminal = spec.terminal === null ? {} : { TERM: 'xterm-256color' };
    return await this.#start(command, { ...terminal, ...spec.env }, spec, options.signal);
  }

  /** Stores the secrets where later programs find them, and no process outside does. */
  async deliver(secrets: readonly ResolvedSecret[]): Promise<void> {
    const put = async (path: string, text: string) => {
      const body = (async function* () {
        yield Buffer.from(text);
      })();
      await this.files.write(path, body, { mode: 0o400 });
    };
    for (const { name, delivery, value } of secrets)
      if (delivery === 'file') await put(`/run/secrets/${name}`, value);
    const exports = secrets
      .filter(({ delivery, name }) => delivery === 'env' && /^[A-Za-z_]\w*$/.test(name))
      .map(({ name, value }) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`);
    await put(ENVIRONMENT, exports.join(''));
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  async #shell(script: string, args: readonly string[], stdin: boolean): Promise<ExecProcess> {
    const inner = 'cd "$1" || exit 126; shift; exec /bin/sh -c "$@"';
    const command = [SHELL, '-c', inner, 'sh', this.#work, script, 'sh', ...args];
    return await this.#start(command, {}, { stdin, terminal: null, timeoutSeconds: null });
  }

  async #start(
    command: readonly string[],
    env: Readonly<Record<string, string>>,
    { stdin, terminal, timeoutSeconds }: Pick<SpawnSpec, 'stdin' | 'terminal' | 'timeoutSeconds'>,
    signal?: AbortSignal,
  ): Promise<ExecProcess> {
    if (this.#closed) throw lost('The session was closed.');
    const mark = `${MARK}=${randomBytes(12).toString('hex')}`;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const tty = terminal !== null;
    const request = { command, env: [...variables, mark], stdin, tty };
    try {
      const { id, raw } = await startExec(this.#client, this.#container, request, signal);
      return new ExecProcess(id, raw, {
        tty,
        timeoutSeconds,
        control: {
          exitCode: () => this.#exitCode(id),
          signal: (name) => this.#signal(mark, name),
          resize: (size) => this.#resize(id, size),
        },
      });
    } catch (error) {
      throw failed(error);
    }
  }

  async #exitCode(id: string): Promise<number> {
    for (const until = performance.now() + TOLD_MS; ; ) {
      const { Running, ExitCode } = await this.#client.call(ExecState, 'GET', `/exec/${id}/json`);
      if (!Running && ExitCode !== null) return ExitCode;
      if (performance.now() > until) throw lost('The engine ended its stream, and not the program.');
      await sleep(LOOK_MS);
    }
  }

  async #signal(mark: string, signal: Signal): Promise<number> {
    const passes = signal === 'SIGKILL' ? KILL_PASSES : '1';
    const process = await this.#start(
      [SHELL, '-c', SIGNAL, 'sh', mark, signal.slice(3), passes],
      {},
      {
        stdin: false,
        terminal: null,
        timeoutSeconds: null,
      },
    );
    // Its end is not awaited: an engine reports it only after that of another program whose output is not read.
    let text = '';
    for await (const { stream, data } of process.output) {
      if (stream === 'stdout') text += Buffer.from(data).toString();
      if (text.includes('\n')) break;
    }
    process.drop();
    return Number(text.trim()) || 0;
  }

  async #resize(id: string, { rows, cols }: TerminalSize): Promise<void> {
    await this.#client
      .send('POST', `/exec/${id}/resize`, { query: { h: String(rows), w: String(cols) } })
      .catch((error: unknown) => {
        throw failed(error);
      });
  }
}
