import type { Clock } from '../../../core/ports/clock.ts';
import type { StubReply, StubRequest } from '../wire/protocol.ts';
import type { StubTransport } from '../wire/transport.ts';
import { StubConnectionError } from '../wire/transport.ts';
import { settleOutcome } from './settle-outcome.ts';
import type { StubWorld } from './world.ts';

/** Transport to a stub in this process, without a network. A simulation wraps it in one that delays and loses. */
export class WorldTransport implements StubTransport {
  readonly #world: StubWorld;
  readonly #clock: Clock;

  constructor(world: StubWorld, clock: Clock) {
    this.#world = world;
    this.#clock = clock;
  }

  async call(request: StubRequest, signal: AbortSignal): Promise<StubReply> {
    signal.throwIfAborted();
    const answer = await settleOutcome(this.#world, this.#clock, request, signal);
    if (answer === 'dropped') throw new StubConnectionError('The connection was cut.', true);
    if (answer !== 'hung') return answer;
    return await new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }
}
