import type { AgentSession } from '../../shared/agent-session/agent-session.ts';
import { openAgent } from './channel.ts';

/** Whoever waits for a sandbox comes at once; one that nobody came for holds no descriptor. */
const KEEP_MS = 5_000;

/**
 * Channels that are opened while their sandbox is on its way up: the socket of its agent listens before anybody is behind
 * it, and who connects by then need not when the agent is there.
 */
export class EarlyAgents {
  readonly #opening = new Map<string, Promise<AgentSession | null>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** By the name of the directory. That it fails is told to nobody: it is opened again by whoever needs it. */
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

  /** One that is open already. */
  give(name: string, agent: AgentSession): void {
    this.drop(name);
    this.#opening.set(name, Promise.resolve(agent));
  }

  /** Once: whoever takes it closes it. `null` when there is none that works. */
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
