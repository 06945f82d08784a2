import type { Clock } from '../../core/clock.ts';
import type { StubReply, StubRequest } from './protocol.ts';
import type { StubWorld } from './world.ts';

/** Resolves after `ms`, or as soon as anything happens in the world. */
async function changeWithin(world: StubWorld, clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const changed = Promise.withResolvers<void>();
  const stop = world.listen(() => changed.resolve());
  try {
    await Promise.race([changed.promise, clock.sleep(ms, AbortSignal.any([signal, over.signal]))]);
  } finally {
    stop();
    over.abort();
  }
}

/** Carries one request to the world and waits until there is something to answer, in the world's time. */
export async function settleOutcome(
  world: StubWorld,
  clock: Clock,
  request: StubRequest,
  signal: AbortSignal,
): Promise<StubReply | 'dropped' | 'hung'> {
  let outcome = world.handle(request);
  const delayMs = outcome.delayMs ?? 0;
  if (outcome.kind === 'wait') {
    const { until } = outcome;
    while (outcome.kind === 'wait') {
      const now = clock.now();
      if (now < until) await changeWithin(world, clock, Math.min(until, world.nextChangeAt()) - now, signal);
      outcome = world.check(clock.now() < until ? request : ({ ...request, timeout_ms: 0 } as StubRequest));
    }
  }
  if (delayMs > 0) await clock.sleep(delayMs, signal);
  return outcome.kind === 'reply' ? outcome.reply : outcome.kind;
}
