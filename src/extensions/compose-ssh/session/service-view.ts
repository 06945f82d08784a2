import type { SandboxFiles, SandboxProcess, SandboxSession } from '../../../core/ports/session.ts';
import { filesOver, must } from '../../shared/channel/files-over.ts';

type Session = () => Promise<SandboxSession>;

/** Process ids of services that are not the default: each agent counts its own. */
const SERVICE_OF_ID = /^(.+)@([^@]+)$/;

export function splitProcessId(id: string): { readonly id: string; readonly service: string | null } {
  const [, own = id, service = null] = SERVICE_OF_ID.exec(id) ?? [];
  return { id: own, service };
}

/** A session of one service, over the current connection to it. */
export class ServiceView implements SandboxSession {
  readonly files: SandboxFiles;
  readonly #session: Session;
  readonly #suffix: string;

  /** Appends the suffix to ids of processes. */
  constructor(session: Session, suffix: string) {
    this.#session = session;
    this.#suffix = suffix;
    this.files = filesOver(session);
  }

  spawn: SandboxSession['spawn'] = async (spec, options) =>
    this.#named(await (await this.#session()).spawn(spec, options));
  attach: NonNullable<SandboxSession['attach']> = async (id, from, options) =>
    this.#named(await must((await this.#session()).attach?.(splitProcessId(id).id, from, options)));
  processes: NonNullable<SandboxSession['processes']> = async (options) =>
    (await must((await this.#session()).processes?.(options))).map((process) => ({
      ...process,
      process_id: `${process.process_id}${this.#suffix}`,
    }));
  dial: NonNullable<SandboxSession['dial']> = async (port, options) =>
    await must((await this.#session()).dial?.(port, options));

  /** Does nothing: the session that it is part of closes the connection. */
  async close(): Promise<void> {}

  #named(process: SandboxProcess): SandboxProcess {
    if (this.#suffix === '') return process;
    return {
      id: `${process.id}${this.#suffix}`,
      output: process.output,
      exit: process.exit,
      write: (data) => process.write(data),
      endInput: () => process.endInput(),
      kill: (signal) => process.kill(signal),
      resize: (size) => process.resize(size),
      detach: () => process.detach(),
    };
  }
}
