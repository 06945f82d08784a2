import { closeSync, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { SandboxerError } from '../../contract/errors.ts';
import type { ExitStatus, Signal, TerminalSize } from '../../contract/exec.ts';
import type { AbortableOptions, SandboxProcess, SandboxSession, SpawnSpec } from '../../core/session.ts';
import type { AgentSession } from '../shared/agent-session/agent-session.ts';
import { connectAgent } from '../shared/agent-session/connect-agent.ts';
import type { Channel } from '../shared/channel.ts';
import { secretEnvironment } from '../shared/secret-files.ts';
import type { SandboxRecord } from './record.ts';

/** 128 + SIGKILL. */
const KILLED = 137;
/** More does not fit into the address of a unix socket. */
const LONGEST_PATH = 100;

/** Gives a path that the kernel takes: a long one goes through its directory. */
export async function withReachable<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
  if (Buffer.byteLength(path) <= LONGEST_PATH) return await work(path);
  const directory = openSync(dirname(path), 'r');
  try {
    return await work(`/proc/self/fd/${directory}/${basename(path)}`);
  } finally {
    closeSync(directory);
  }
}

function closedDoor(error: unknown): boolean {
  const code =
    error instanceof Error && error.cause instanceof Error ? (error.cause as NodeJS.ErrnoException).code : '';
  return code === 'ENOENT' || code === 'ECONNREFUSED';
}

/** The bare channel to the agent at this path. */
export async function openAgent(path: string, signal?: AbortSignal): Promise<AgentSession> {
  const options = { backend: 'ext.local', ...(signal === undefined ? {} : { signal }) };
  try {
    return await withReachable(path, (reachable) => connectAgent(reachable, options));
  } catch (error) {
    if (signal?.aborted) {
      throw new SandboxerError('SBX_CANCELLED', 'It was given up before the agent answered.', {
        backend: 'ext.local',
      });
    }
    if (!closedDoor(error)) throw error;
    throw new SandboxerError('SBX_BACKEND_LOST', 'It has ended.', { backend: 'ext.local', cause: error });
  }
}

/** How often the kernel has killed something in this sandbox for want of memory. */
export type OomKills = () => Promise<number>;

/** The agent sees that a program was killed, and only the host sees why. */
class JudgedProcess implements SandboxProcess {
  readonly id: string;
  readonly output: SandboxProcess['output'];
  readonly exit: SandboxProcess['exit'];
  readonly #process: SandboxProcess;

  constructor(process: SandboxProcess, judge: (exit: ExitStatus) => Promise<ExitStatus>) {
    this.#process = process;
    this.id = process.id;
    this.output = process.output;
    this.exit = process.exit.then(judge);
    this.exit.catch(() => {});
  }

  write(data: Uint8Array): Promise<void> {
    return this.#process.write(data);
  }

  endInput(): Promise<void> {
    return this.#process.endInput();
  }

  kill(signal: Signal): Promise<void> {
    return this.#process.kill(signal);
  }

  resize(size: TerminalSize): Promise<void> {
    return this.#process.resize(size);
  }

  detach(): Promise<void> {
    return this.#process.detach();
  }
}

/** The agent's session, with the variables that every program of this sandbox has. */
export async function openChannel(
  path: string,
  record: SandboxRecord,
  oomKills: OomKills,
  signal?: AbortSignal,
): Promise<Channel> {
  const agent = await openAgent(path, signal);
  const secrets = record.secretFiles ? await secretEnvironment(agent) : {};
  const variables = { ...record.variables, ...secrets };
  const bare = Object.keys(variables).length === 0;
  let known = 0;
  const judge = async (exit: ExitStatus): Promise<ExitStatus> => {
    if (exit.code !== KILLED || exit.timed_out || exit.out_of_memory) return exit;
    const before = known;
    known = await oomKills().catch(() => before);
    return known > before ? { ...exit, out_of_memory: true } : exit;
  };
  const spawn = async (spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess> => {
    const full = bare ? spec : { ...spec, env: { ...variables, ...spec.env } };
    return new JudgedProcess(await agent.spawn(full, options), judge);
  };
  const session: SandboxSession = {
    spawn,
    attach: async (id, from, options) => new JudgedProcess(await agent.attach(id, from, options), judge),
    processes: (options) => agent.processes(options),
    files: agent.files,
    dial: (port, options) => agent.dial(port, options),
    close: () => agent.close(),
  };
  return {
    session,
    get isLost() {
      return agent.isLost;
    },
  };
}
