import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { openAgent } from './channel.ts';

/** Requests for a sandbox come at once; an unclaimed channel must not hold its descriptor for long. */
const KEEP_MS = 5_000;

/**
 * Channels that are opened while their sandbox starts: the socket of its agent listens before the agent runs, and a connection
 * made by then is ready when the agent is.
 */
export class EarlyAgents {
  readonly #opening = new Map<string, Promise<AgentSession | null>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** Opens a channel, by the name of the directory. A failure is not reported: the next request opens another channel. */
  open(name: string, path: string): void {
    this.drop(name);
    this.#opening.set(
      name,
      openAgent(path).catch(() => null),
    );
    const timer = setTimeout(() => this.drop(name), KEEP_MS);
    timer.unref();
    this.#timers.set(name, timer);
  }

  /** Adds a channel that is open already. */
  give(name: string, agent: AgentSession): void {
    this.drop(name);
    this.#opening.set(name, Promise.resolve(agent));
  }

  /** Takes the channel, once; the caller closes it. Returns `null` when none works. */
  async take(name: string): Promise<AgentSession | null> {
    const opening = this.#forget(name);
    const agent = (await opening) ?? null;
    return agent?.isLost ? null : agent;
  }

  drop(name: string): void {
    void this.#forget(name)?.then((agent) => agent?.close());
  }

  close(): void {
    for (const name of [...this.#opening.keys()]) this.drop(name);
  }

  #forget(name: string): Promise<AgentSession | null> | undefined {
    const opening = this.#opening.get(name);
    this.#opening.delete(name);
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
    return opening;
  }
}
