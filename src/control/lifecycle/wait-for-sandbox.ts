import { waitAtMost } from '../../async/with-timeout.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { after, NOT_NEEDED } from '../../core/ports/clock.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** A promise for the next commit that touches a sandbox, without polling. */
function nextChange(deps: ControlPorts, uid: string): { changed: Promise<void>; stop(): void } {
  let stop: () => void = () => {};
  const changed = new Promise<void>((resolve) => {
    stop = deps.store.onCommit((notice) => {
      if (notice.sandboxUids.has(uid)) resolve();
    });
  });
  return { changed, stop };
}

interface WaitLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the row as soon as it satisfies `done`, or as it is when the time is up. Reads it only after a change. */
export async function waitForSandbox(
  deps: ControlPorts,
  uid: string,
  done: (row: SandboxRecord) => boolean,
  { timeoutMs, signal }: WaitLimits,
): Promise<SandboxRecord | null> {
  const endsAt = deps.clock.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const change = nextChange(deps, uid);
    const finished = new AbortController();
    try {
      const row = await deps.store.read('wait', (tx) => tx.sandboxes.get(uid));
      if (!row || done(row)) return row;
      const left = endsAt - deps.clock.now();
      if (left <= 0) return row;
      const until = signal ? AbortSignal.any([signal, finished.signal]) : finished.signal;
      await Promise.race([change.changed, deps.clock.sleep(left, until).catch(() => {})]);
    } finally {
      change.stop();
      finished.abort(NOT_NEEDED);
    }
  }
}

/** The promise's value if it comes in time, else `null`. An abort of the signal rejects. */
export async function firstWithin<T>(
  deps: ControlPorts,
  promise: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<T | null> {
  return await waitAtMost(promise, { after: (ms, act) => after(deps.clock, ms, act), timeoutMs, signal });
}
