import type { Clock } from '../../../core/ports/clock.ts';
import type { StubReply, StubRequest } from '../wire/protocol.ts';
import type { StubWorld } from './world.ts';

interface ChangeWait {
  readonly name: string;
  readonly ms: number;
  readonly signal: AbortSignal;
}

/** Resolves after `ms`, or as soon as the object changes. */
async function changeWithin(world: StubWorld, clock: Clock, { name, ms, signal }: ChangeWait): Promise<void> {
  const over = new AbortController();
  const changed = Promise.withResolvers<void>();
  const stop = world.listen((event) => {
    if ('name' in event && event.name === name) changed.resolve();
  });
  try {
    await Promise.race([changed.promise, clock.sleep(ms, AbortSignal.any([signal, over.signal]))]);
  } finally {
    stop();
    over.abort();
  }
}

/** Passes one request to the world and waits until there is an answer, in the world's time. */
export async function settleOutcome(
  world: StubWorld,
  clock: Clock,
  request: StubRequest,
  signal: AbortSignal,
): Promise<StubReply | 'dropped' | 'hung'> {
  let outcome = world.handle(request);
  const delayMs = outcome.delayMs ?? 0;
  if (outcome.kind === 'wait' && 'name' in request) {
    const { until } = outcome;
    const { name } = request;
    while (outcome.kind === 'wait') {
      const now = clock.now();
      const nextAt = Math.min(until, world.nextChangeOf(name));
      if (now < until) await changeWithin(world, clock, { name, ms: nextAt - now, signal });
      outcome = world.check(clock.now() < until ? request : ({ ...request, timeout_ms: 0 } as StubRequest));
    }
  }
  if (delayMs > 0) await clock.sleep(delayMs, signal);
  if (outcome.kind === 'wait') throw new Error('Nothing is waited for without a name.');
  return outcome.kind === 'reply' ? outcome.reply : outcome.kind;
}
