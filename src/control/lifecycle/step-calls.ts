import { SandboxerError } from '../../contract/errors.ts';
import type { AttemptRecord } from '../../core/attempt.ts';
import type { Progress } from '../../core/extension.ts';
import type { SandboxOperation } from '../../core/sandbox.ts';
import type { SetupStep } from '../../core/setup-log.ts';
import type { ControlDeps } from '../deps.ts';
import { backendFailure } from './backend-error.ts';
import { attemptStarted } from './observe-attempt.ts';
import { performOperation, performProbe, performProvision, performTeardown } from './perform-step.ts';
import { setupFailure } from './run-setup.ts';
import type { Settlement } from './settle-step.ts';
import {
  settleAttemptFailed,
  settleOperated,
  settleOperationFailed,
  settleProvisioned,
  settleProvisionFailed,
  settleReady,
  settleTeardown,
  withSetup,
} from './settle-step.ts';
import type { Claim } from './work.ts';

/** A call to a backend, and how either outcome of it is written. */
export interface StepCall {
  readonly timeoutMs: number;
  /** What it answers is asked for only when nobody has given up on the call meanwhile. */
  readonly run: (signal: AbortSignal) => Promise<() => Settlement>;
  readonly failed: (error: unknown) => Settlement;
}

export interface ProvisionCall extends StepCall {
  /** The attempt with its handle, once the backend has given one. */
  readonly made: () => AttemptRecord | null;
}

function provisionTimeoutMs(deps: ControlDeps, { extensionId }: AttemptRecord): number {
  return (deps.extensions.get(extensionId)?.header.provisionTimeoutSeconds ?? 60) * 1000;
}

/** A time limit that passed while the backend fetched, built or started what the request brought is the request's fault. */
function lateWork(error: unknown, doing: Progress | null): unknown {
  const isLate = error instanceof SandboxerError && error.code === 'SBX_TIMEOUT';
  if (!isLate || doing === null || doing.phase === 'done') return error;
  const code = doing.stage === 'pull' ? 'SBX_IMAGE_UNAVAILABLE' : 'SBX_WORKLOAD_FAILED';
  return new SandboxerError(code, `${doing.subject}: ${doing.stage} did not end in time. ${error.detail}`, {
    ...error.extras,
    cause: error,
  });
}

export function provisionCall(
  deps: ControlDeps,
  { sandbox, documents }: Claim,
  attempt: AttemptRecord,
  isFirstCall: boolean,
): ProvisionCall {
  let made: AttemptRecord | null = null;
  let doing: Progress | null = null;
  attemptStarted(deps, attempt, documents);
  return {
    timeoutMs: provisionTimeoutMs(deps, attempt),
    made: () => made,
    async run(signal) {
      const handle = await performProvision(deps, sandbox, attempt, documents, {
        signal,
        tell: (progress) => {
          doing = progress;
        },
      });
      return () => {
        made = { ...attempt, handle };
        return settleProvisioned(attempt, handle, deps.clock.now());
      };
    },
    failed(error) {
      const failure = backendFailure(lateWork(error, doing), attempt.extensionId);
      return settleProvisionFailed(attempt, failure, isFirstCall);
    },
  };
}

export function probeCall(
  deps: ControlDeps,
  { sandbox, documents }: Claim,
  attempt: AttemptRecord,
): StepCall {
  const setup: SetupStep[] = [];
  return {
    timeoutMs: provisionTimeoutMs(deps, attempt),
    async run(signal) {
      const ready = await performProbe(deps, sandbox, attempt, documents, signal, setup);
      return () => withSetup(attempt, setup, settleReady(attempt, ready, documents));
    },
    failed(error) {
      const cause = setup.length > 0 ? setupFailure(error, setup) : error;
      const failure = { ...backendFailure(cause, attempt.extensionId), creation: 'created' } as const;
      return withSetup(attempt, setup, settleAttemptFailed(attempt, failure));
    },
  };
}

export function teardownCall(deps: ControlDeps, attempt: AttemptRecord): StepCall {
  return {
    timeoutMs: deps.settings.teardownTimeoutMs,
    async run(signal) {
      const report = await performTeardown(deps, attempt, signal);
      return () => settleTeardown(attempt, report, null);
    },
    failed: (error) => settleTeardown(attempt, null, backendFailure(error, attempt.extensionId)),
  };
}

export function operationCall(
  deps: ControlDeps,
  { sandbox, documents }: Claim,
  operation: SandboxOperation,
): StepCall {
  return {
    timeoutMs: deps.settings.operationTimeoutMs,
    async run(signal) {
      const outcome = await performOperation(deps, sandbox, operation, documents, signal);
      return () => settleOperated(operation, outcome);
    },
    failed: (error) => settleOperationFailed(operation, backendFailure(error, sandbox.extensionId as string)),
  };
}
