/** A real server under Node's inspector: which files a request goes through, as the engine of JavaScript saw it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SERVER_FLAGS } from '../../src/cli/daemon/server-flags.ts';
import type { Answer } from '../integration/http/fixture.ts';
import { answerTo, send } from '../integration/http/fixture.ts';
import { until } from '../support/until.ts';
import { ROOT } from './run-document.ts';

interface StackTrace {
  readonly callFrames: readonly { readonly scriptId: string }[];
  readonly parent?: StackTrace;
}

interface Paused {
  readonly callFrames: readonly { readonly location: { readonly scriptId: string } }[];
  readonly asyncStackTrace?: StackTrace;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of types
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly result?: any;
  readonly error?: { readonly message: string };
}

/** Where a trace looks at the call stack: at the first line of a function's body. */
export interface Stop {
  readonly file: string;
  /** The text before the body, on one line of the file. */
  readonly head: string;
}

export interface Trace {
  readonly answer: Answer;
  /** Files of `src/` from the request down to the stop, each once, in the order of the first call. */
  readonly down: readonly string[];
  /** Files of `src/` in which a function ran while the request was served. */
  readonly executed: ReadonlySet<string>;
}

/** Where a request comes in; what is above it in a stack is the start of the server. */
const SERVER = 'src/http/server/server.ts';
const SOURCE = `file://${ROOT}/`;
const inSource = (url: string) => url.startsWith(`${SOURCE}src/`);
const fileOf = (url: string) => url.slice(SOURCE.length);

export class RequestTracer {
  readonly #child: ChildProcess;
  readonly #socket: WebSocket;
  readonly #socketPath: string;
  /** The id of each script of `src/`, and its file. */
  readonly #scripts = new Map<string, string>();
  readonly #waiting = new Map<number, (message: Message) => void>();
  #lastId = 0;
  #paused: (params: Paused) => void = () => {};

  private constructor(child: ChildProcess, socket: WebSocket, socketPath: string) {
    this.#child = child;
    this.#socket = socket;
    this.#socketPath = socketPath;
    socket.addEventListener('message', ({ data }) => this.#receive(JSON.parse(String(data)) as Message));
  }

  /** Starts `sandboxer serve` from its sources. */
  static async start(env: Readonly<Record<string, string>>): Promise<RequestTracer> {
    const socketPath = join(env.SANDBOXER_STATE_DIR as string, 'traced.sock');
    const child = spawn(
      process.execPath,
      [...SERVER_FLAGS, '--inspect=127.0.0.1:0', 'src/cli/main.ts', 'serve'],
      {
        cwd: ROOT,
        env: { ...env, SANDBOXER_SOCKET: socketPath, SANDBOXER_LOCAL: '0', SANDBOXER_DOCKER: '0' },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    try {
      const socket = new WebSocket(await inspectorOf(child));
      await once(socket, 'open');
      const tracer = new RequestTracer(child, socket, socketPath);
      await tracer.#begin();
      return tracer;
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  async #begin(): Promise<void> {
    await this.#ask('Debugger.enable');
    await this.#ask('Debugger.setAsyncCallStackDepth', { maxDepth: 256 });
    await this.#ask('Profiler.enable');
    await this.#ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await until(
      () => existsSync(this.#socketPath),
      () => 'the server does not listen',
    );
  }

  call(method: string, path: string, json?: unknown): Promise<Answer> {
    return answerTo(send({ socketPath: this.#socketPath }, method, path, json === undefined ? {} : { json }));
  }

  /** Makes one request, and looks at the call stack when it first comes to `stop`. */
  async trace(stop: Stop, method: string, path: string, json?: unknown): Promise<Trace> {
    const { breakpointId } = await this.#ask('Debugger.setBreakpointByUrl', await this.#place(stop));
    let down: readonly string[] = [];
    this.#paused = (params) => {
      down = this.#filesDown(params);
      void this.#ask('Debugger.resume');
    };
    await this.#ask('Profiler.takePreciseCoverage');
    // A request that comes to the stop is answered after it was let go there.
    const answer = await this.call(method, path, json);
    const coverage = await this.#ask('Profiler.takePreciseCoverage');
    await this.#ask('Debugger.removeBreakpoint', { breakpointId });
    return { answer, down, executed: executedIn(coverage.result) };
  }

  async stop(): Promise<void> {
    this.#socket.close();
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  /** The files of a stack and of those that wait for it, from the server down. */
  #filesDown({ callFrames, asyncStackTrace }: Paused): string[] {
    const upwards = callFrames.map(({ location }) => location.scriptId);
    for (let stack = asyncStackTrace; stack; stack = stack.parent)
      upwards.push(...stack.callFrames.map(({ scriptId }) => scriptId));
    const files = upwards.reverse().flatMap((scriptId) => this.#scripts.get(scriptId) ?? []);
    return [...new Set(files.slice(files.indexOf(SERVER)))];
  }

  async #place({ file, head }: Stop) {
    const [scriptId] = [...this.#scripts].find(([, loaded]) => loaded === file) ?? [];
    if (scriptId === undefined) throw new Error(`The server has not loaded ${file}.`);
    const { scriptSource } = await this.#ask('Debugger.getScriptSource', { scriptId });
    const line = (scriptSource as string).split('\n').findIndex((text) => text.includes(head));
    if (line < 0) throw new Error(`${file} has no line with "${head}".`);
    return { url: `${SOURCE}${file}`, lineNumber: line + 1 };
  }

  // biome-ignore lint/suspicious/noExplicitAny: each method has a result of its own
  async #ask(method: string, params: object = {}): Promise<any> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await answered;
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  #receive({ id, method, params, ...message }: Message): void {
    if (id !== undefined) this.#waiting.get(id)?.(message);
    if (method === 'Debugger.scriptParsed' && inSource(params.url))
      this.#scripts.set(params.scriptId, fileOf(params.url));
    if (method === 'Debugger.paused') this.#paused(params);
  }
}

function executedIn(
  scripts: readonly { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[],
): Set<string> {
  const ran = scripts.filter(
    ({ url, functions }) => inSource(url) && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0),
  );
  return new Set(ran.map(({ url }) => fileOf(url)));
}

/** The address that Node prints on its standard error. */
async function inspectorOf(child: ChildProcess): Promise<string> {
  if (!child.stderr) throw new Error('The server has no standard error.');
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    said.push(line);
    const [, address] = /^Debugger listening on (ws:\S+)$/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stderr.resume();
    return address;
  }
  throw new Error(`The server ended: ${said.join('\n')}`);
}
