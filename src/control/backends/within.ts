import { withTimeout } from '../../async/with-timeout.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { after } from '../../core/ports/clock.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/**
 * Runs a backend call that must not hold up its worker: its signal aborts when `signal` does or the time is up, and the call is
 * then abandoned, whether or not it listens.
 */
export async function within<T>(
  deps: ControlPorts,
  timeoutMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = () =>
    new SandboxerError('SBX_TIMEOUT', `The backend did not answer within ${timeoutMs / 1000} s.`);
  return await withTimeout({ after: (ms, act) => after(deps.clock, ms, act), timeoutMs, signal }, late, call);
}
