import type { ExitStatus, Signal, TerminalSize } from '../../../contract/sandboxes/exec.ts';
import type {
  AbortableOptions,
  SandboxProcess,
  SandboxSession,
  SpawnSpec,
} from '../../../core/ports/session.ts';
import type { Channel } from './channel.ts';

/** Exit code of a killed program: 128 + SIGKILL. */
const KILLED = 137;

/** How many processes of this sandbox the kernel has killed for want of memory: the last known count, and the current one. */
export interface OomKills {
  known: number;
  count(): Promise<number>;
}

/** Adds the reason of a kill: the agent sees that a program was killed, and only the host sees why. */
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

interface Losable extends SandboxSession {
  readonly isLost: boolean;
}

/** Returns a session with facts that only the host has, and with the variables that every program of this sandbox has. */
export function judgedChannel(
  inner: Losable,
  variables: Readonly<Record<string, string>>,
  oomKills: OomKills,
): Channel {
  const bare = Object.keys(variables).length === 0;
  const judge = async (exit: ExitStatus): Promise<ExitStatus> => {
    if (exit.code !== KILLED || exit.timed_out || exit.out_of_memory) return exit;
    const now = await oomKills.count().catch(() => oomKills.known);
    // A lower count began anew since.
    const before = now < oomKills.known ? 0 : oomKills.known;
    oomKills.known = now;
    return now > before ? { ...exit, out_of_memory: true } : exit;
  };
  const spawn = async (spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess> => {
    const full = bare ? spec : { ...spec, env: { ...variables, ...spec.env } };
    return new JudgedProcess(await inner.spawn(full, options), judge);
  };
  const { attach, processes, files, dial } = inner;
  const session: SandboxSession = {
    spawn,
    ...(attach === undefined
      ? {}
      : {
          attach: async (id, from, options) =>
            new JudgedProcess(await attach.call(inner, id, from, options), judge),
        }),
    ...(processes === undefined ? {} : { processes: (options) => processes.call(inner, options) }),
    ...(files === undefined ? {} : { files }),
    ...(dial === undefined ? {} : { dial: (port, options) => dial.call(inner, port, options) }),
    get isLost() {
      return inner.isLost;
    },
    close: () => inner.close(),
  };
  return {
    session,
    get isLost() {
      return inner.isLost;
    },
  };
}
