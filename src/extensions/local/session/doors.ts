import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { connectAgent } from '../../shared/agent-session/connect-agent.ts';
import { AgentDoor } from '../../shared/channel/agent-door.ts';
import type { Layout } from '../state/layout.ts';
import type { SandboxRecord } from '../state/record.ts';

const BACKEND = 'ext.local';
/** Time for a running agent to call, also after the server was away. */
const CALL_MS = 20_000;

/** Doors for sandboxes with a kernel of their own, whose agents inherit no socket and call the host. */
export class Doors {
  readonly #layout: Layout;
  readonly #open = new Map<string, Promise<AgentDoor>>();

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Opens the door before the sandbox starts: its agent, as its first process, is then the one that finds the socket. */
  async open({ attemptId, range }: SandboxRecord): Promise<void> {
    (await this.#at(attemptId, range)).makeReachable();
  }

  async agent({ attemptId, range }: SandboxRecord, signal?: AbortSignal): Promise<AgentSession> {
    const door = await this.#at(attemptId, range);
    const socket = await door.take(signal ?? new AbortController().signal, CALL_MS);
    return await connectAgent(socket, { backend: BACKEND, ...(signal === undefined ? {} : { signal }) });
  }

  /** Closes the door of a sandbox whose agent will not call again. */
  shut(attemptId: string): void {
    const door = this.#open.get(attemptId);
    this.#open.delete(attemptId);
    door?.then(
      (open) => open.close(),
      () => {},
    );
  }

  close(): void {
    for (const attemptId of [...this.#open.keys()]) this.shut(attemptId);
  }

  #at(attemptId: string, owner: number): Promise<AgentDoor> {
    const known = this.#open.get(attemptId);
    if (known !== undefined) return known;
    const options = { backend: BACKEND, owner, sharedKernel: false };
    const opening = AgentDoor.open(this.#layout.sandbox(attemptId), 'door', options);
    opening.catch(() => this.#open.delete(attemptId));
    this.#open.set(attemptId, opening);
    return opening;
  }
}

export function levelGone(level: string): SandboxerError {
  return new SandboxerError('SBX_UNAVAILABLE', `What gave it the level ${level} is not here any more.`, {
    backend: BACKEND,
    remedy: 'Install it again: see sandboxer doctor.',
    retryable: false,
  });
}
