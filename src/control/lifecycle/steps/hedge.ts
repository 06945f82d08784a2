import type { ControlPorts } from '../../ports/control-ports.ts';
import type { Step } from './step.ts';
import { GO_ON } from './step.ts';

/**
 * Waits until a second attempt is due beside a slow first one. `nextSteps` then starts it, in the transaction that ends
 * the wait. The lease is kept by the attempt that is waited for.
 */
export function hedgeStep({ clock }: ControlPorts, at: number): Step<void> {
  return {
    label: 'hedge',
    timeoutMs: null,
    call: (signal) => clock.sleep(Math.max(0, at - clock.now()), signal),
    settle: async () => GO_ON,
    fail: async () => GO_ON,
  };
}
