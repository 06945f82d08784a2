import type { AbortableOptions, SandboxFiles, SandboxSession, SpawnSpec } from '../../core/ports/session.ts';
import type { AgentSession } from '../shared/agent-session/agent-session.ts';
import { filesOver } from '../shared/channel/files-over.ts';

type Connect = () => Promise<AgentSession>;

/** Session with programs over one agent; files over another, which is connected at the first use. */
export class DirectorySession implements SandboxSession {
  readonly files?: SandboxFiles;
  readonly #programs: AgentSession;
  readonly #environment: Readonly<Record<string, string>>;
  #filing: Promise<AgentSession> | null = null;

  /** `connectFiles` is `null` where files cannot be confined. */
  constructor(
    programs: AgentSession,
    environment: Readonly<Record<string, string>>,
    connectFiles: Connect | null,
  ) {
    this.#programs = programs;
    this.#environment = environment;
    if (connectFiles !== null) this.files = filesOver(() => this.#files(connectFiles));
  }

  spawn = (spec: SpawnSpec, options?: AbortableOptions) =>
    this.#programs.spawn({ ...spec, env: { ...this.#environment, ...spec.env } }, options);
  attach: NonNullable<SandboxSession['attach']> = (id, from, options) =>
    this.#programs.attach(id, from, options);
  processes: NonNullable<SandboxSession['processes']> = (options) => this.#programs.processes(options);
  dial: NonNullable<SandboxSession['dial']> = (port, options) => this.#programs.dial(port, options);

  async close(): Promise<void> {
    await this.#programs.close();
    await this.#filing?.then((session) => session.close()).catch(() => {});
  }

  async #files(connect: Connect): Promise<AgentSession> {
    const known = await this.#filing?.catch(() => null);
    if (known && !known.isLost) return known;
    const opening = connect();
    this.#filing = opening;
    return await opening;
  }
}
