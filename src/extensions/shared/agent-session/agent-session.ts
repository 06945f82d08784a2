import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ProcessInfo } from '../../../contract/sandboxes/exec.ts';
import type {
  AbortableOptions,
  PortConnection,
  SandboxFiles,
  SandboxProcess,
  SandboxSession,
  SpawnSpec,
} from '../../../core/ports/session.ts';
import type { AgentChannel } from './agent-channel.ts';
import type { AgentConnection, AgentInfo } from './agent-connection.ts';
import { AgentFiles } from './agent-files.ts';
import { AgentListener } from './agent-listener.ts';
import { AgentProcess } from './agent-process.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import { AgentPortConnection } from './port-connection.ts';
import { readEntries } from './read-entries.ts';
import { readProcess } from './read-process.ts';
import { whileOpen } from './while-open.ts';
import { T } from './wire.ts';

const STDIN = 1;
const BACKGROUND = 2;
const TERMINAL = 4;
const MAX_PROCESSES = 8192;
const MAX_ID = 64;

/** Session of a sandbox through its agent. When the channel is lost every call rejects with `SBX_EXTENSION_FAILED`. */
export class AgentSession implements SandboxSession {
  readonly info: AgentInfo;
  readonly files: Required<SandboxFiles>;
  /** Files as root; refused where the agent is not root. */
  readonly rootFiles: Required<SandboxFiles>;
  readonly #connection: AgentConnection;

  constructor(connection: AgentConnection, info: AgentInfo) {
    this.#connection = connection;
    this.info = info;
    this.files = new AgentFiles(connection, false);
    this.rootFiles = new AgentFiles(connection, true);
  }

  get isLost(): boolean {
    return this.#connection.isLost;
  }

  /** Resolves with the reason when the channel is lost or was closed. */
  get ended(): Promise<SandboxerError> {
    return this.#connection.ended;
  }

  async ping(): Promise<void> {
    await this.#connection.ping();
  }

  async spawn(spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess> {
    options?.signal?.throwIfAborted();
    const [program = ''] = spec.argv;
    return await this.#process(this.#connection.open(T.spawn, this.#spawnRequest(spec), program), 0, options);
  }

  async attach(processId: string, from: number, options?: AbortableOptions): Promise<SandboxProcess> {
    options?.signal?.throwIfAborted();
    const request = new PayloadWriter().string(processId).u64(from).u32(this.#connection.windowBytes);
    return await this.#process(this.#connection.open(T.attach, request, processId), from, options);
  }

  async processes(options?: AbortableOptions): Promise<ProcessInfo[]> {
    const request = new PayloadWriter().u32(this.#connection.windowBytes);
    const channel = this.#connection.open(T.processes, request, '');
    return await whileOpen(channel, options?.signal, async () => {
      return (await readEntries(channel, MAX_PROCESSES, readProcess)).items;
    });
  }

  async dial(port: number, options?: AbortableOptions): Promise<PortConnection> {
    const request = new PayloadWriter().u16(port).u32(this.#connection.windowBytes);
    const channel = this.#connection.open(T.dial, request, `Port ${port} inside`);
    await whileOpen(channel, options?.signal, () => channel.expect(T.opened), true);
    return new AgentPortConnection(channel);
  }

  /** Listens inside (`tcp:127.0.0.1:8080`, port 0 for any) and returns the connections made there. */
  async listen(address: string, options?: AbortableOptions): Promise<AgentListener> {
    const channel = this.#connection.open(T.listen, new PayloadWriter().string(address), address);
    const opened = await whileOpen(channel, options?.signal, () => channel.expect(T.opened), true);
    return new AgentListener(this.#connection, channel, opened);
  }

  async close(): Promise<void> {
    this.#connection.lose('The session was closed.');
  }

  #spawnRequest(spec: SpawnSpec): PayloadWriter {
    if (spec.argv.length === 0) throw new SandboxerError('SBX_INVALID_REQUEST', 'The program has no name.');
    const flags =
      (spec.stdin ? STDIN : 0) | (spec.background ? BACKGROUND : 0) | (spec.terminal === null ? 0 : TERMINAL);
    return new PayloadWriter()
      .u32(flags)
      .u64(spec.timeoutSeconds === null ? 0 : Math.max(1, Math.ceil(spec.timeoutSeconds * 1000)))
      .u16(spec.terminal?.cols ?? 0)
      .u16(spec.terminal?.rows ?? 0)
      .u32(this.#connection.windowBytes)
      .string(spec.user ?? '')
      .string(spec.cwd ?? '')
      .strings(spec.argv)
      .strings(Object.entries(spec.env).map(([name, value]) => `${name}=${value}`));
  }

  async #process(channel: AgentChannel, from: number, options?: AbortableOptions): Promise<SandboxProcess> {
    const started = await whileOpen(channel, options?.signal, () => channel.expect(T.started), true);
    const id = channel.reading(() => new PayloadReader(started).string(MAX_ID));
    return new AgentProcess(id, channel, from);
  }
}
