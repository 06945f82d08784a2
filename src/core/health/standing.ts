import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { LatencyPrior } from './peak-latency.ts';

/** The latency that each class stands for, in milliseconds, until it was measured or the registry has figures. */
const CLASS_PRIORS: Readonly<Record<CapabilityVector['latency_class'], LatencyPrior>> = {
  instant: { aloneMs: 20, burstMs: 200 },
  fast: { aloneMs: 500, burstMs: 1_000 },
  standard: { aloneMs: 2_000, burstMs: 4_000 },
  slow: { aloneMs: 30_000, burstMs: 90_000 },
};

export function classPrior(latencyClass: CapabilityVector['latency_class']): LatencyPrior {
  return CLASS_PRIORS[latencyClass];
}

/** The success rate that is assumed of a backend that was never used: most creates succeed. */
export const PRIOR_SUCCESS = 0.98;

export function unmeasured(
  probe: ExtensionHealth['status'],
  latencyClass: CapabilityVector['latency_class'],
): BackendStanding {
  return {
    probe,
    breaker: 'closed',
    key_refused: false,
    wait_ms: CLASS_PRIORS[latencyClass].aloneMs,
    measured: false,
    success: PRIOR_SUCCESS,
    samples: 0,
    in_flight: 0,
  };
}
