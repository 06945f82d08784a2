import { regionOf } from '../../../core/hosts/regions.ts';
import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import { pendingOperation } from '../../../core/lifecycle/sandbox.ts';
import type { SetupStep } from '../../../core/lifecycle/setup-log.ts';
import type { Handle, Ready } from '../../../core/ports/extension.ts';
import { startDirectory } from '../../../core/ports/inputs.ts';
import { inputTrees } from '../../assets/input-trees.ts';
import { contextFor, extensionOf } from '../../backends/backend-context.ts';
import { openMeter } from '../../money/sandbox-money.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import type { SettleScope } from '../edit/attempt-edit.ts';
import { condemnOutrun, isOutrun, judgeAttempt } from '../edit/attempt-edit.ts';
import { backendFailure } from '../edit/backend-error.ts';
import { AUTOMATION } from '../edit/sandbox-edit.ts';
import { failAttempt } from './fail-attempt.ts';
import { placeInputs } from './place-inputs.ts';
import { runSetup, setupFailure } from './run-setup.ts';
import type { Step, StepSubject, Verdict } from './step.ts';
import { GO_ON, meterIdOf, provisionTimeoutMs } from './step.ts';
import { exposedValues } from './step-secrets.ts';

interface Probed {
  readonly ready: Ready;
  /** How long the request's own inputs and setup took. */
  readonly ownMs: number;
}

/**
 * Reaches a provisioned sandbox and sets it up as its recipe says. Setup may run again after a crash: no caller has used the
 * sandbox yet.
 */
export function probeStep(deps: ControlPorts, subject: StepSubject, attempt: AttemptRecord): Step<Probed> {
  const { sandbox, documents } = subject;
  const { recipe, origin } = documents;
  const setup: SetupStep[] = [];
  return {
    label: 'probe',
    timeoutMs: provisionTimeoutMs(deps, attempt),
    async call(signal) {
      const extension = extensionOf(deps, attempt.extensionId);
      const context = await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId);
      const handle = attempt.handle as Handle;
      const ready = await extension.waitReady(handle, context);
      const reachedAt = deps.clock.now();
      const shipped = extension.header.shipsInputs;
      const places = shipped === 'read-only' ? recipe.workspace.access !== 'ro' : !shipped;
      if (origin.kind === 'recipe' && places) {
        await placeInputs(extension, handle, inputTrees(deps, sandbox), context);
      }
      if (recipe.setupRun.length > 0 && origin.kind === 'recipe')
        await runSetup({ extension, handle, context }, recipe, {
          cwd: startDirectory(sandbox, extension.header),
          secrets: await exposedValues(deps, subject, extension, signal),
          now: () => deps.clock.now(),
          steps: setup,
        });
      return { ready, ownMs: deps.clock.now() - reachedAt };
    },
    async settle(scope, probed) {
      await keepSetup(scope, attempt, setup);
      return settleReady(scope, subject, attempt, probed);
    },
    async fail(scope, error) {
      await keepSetup(scope, attempt, setup);
      const cause = setup.length > 0 ? setupFailure(error, setup) : error;
      const failure = { ...backendFailure(cause, attempt.extensionId), creation: 'created' } as const;
      return failAttempt(scope, attempt, failure);
    },
  };
}

/** Writes what the setup commands printed. */
async function keepSetup(
  { tx }: SettleScope,
  { attemptId, sandboxUid, generation, n, extensionId }: AttemptRecord,
  steps: readonly SetupStep[],
): Promise<void> {
  if (steps.length === 0) return;
  await tx.attempts.putSetup({ attemptId, sandboxUid, generation, n, extensionId, steps: [...steps] });
}

/** Writes `ready`: the winner, its meter and the event, and condemns the attempts beside it. */
async function settleReady(
  scope: SettleScope,
  { documents: { plan, recipe } }: StepSubject,
  attempt: AttemptRecord,
  { ready, ownMs }: Probed,
): Promise<Verdict> {
  const { tx, deps, edit } = scope;
  const extension = deps.extensions.get(attempt.extensionId);
  if (isOutrun(scope, attempt)) return GO_ON;
  if (edit.row.state !== 'provisioning' || !extension) {
    await judgeAttempt(scope, attempt.attemptId, 'caller', { state: 'condemned' });
    return GO_ON;
  }
  await judgeAttempt(scope, attempt.attemptId, 'ready', { state: 'won', endedAt: edit.now, ownMs });
  await condemnOutrun(scope, attempt);
  const host = attempt.hostId === null ? null : await tx.hosts.get(attempt.hostId);
  const meterId = meterIdOf(attempt);
  const chosen = plan.candidates.find((candidate) => candidate.extension === attempt.extensionId);
  edit.patch({
    attempt: attempt.n,
    extensionId: attempt.extensionId,
    hostId: attempt.hostId,
    isolation: ready.isolation,
    region: regionOf(extension.header, host, recipe.requires),
    handle: attempt.handle,
    reachability: ready.reachability,
    notes: ready.notes,
    readyAt: edit.now,
    meterId,
    failure: null,
  });
  await openMeter(
    { tx, deps, at: edit.now },
    {
      meterId,
      holdId: edit.row.holdId as string,
      sandbox: edit.row,
      plan,
      extension,
      attempt,
      earliestDeadlineAt: pendingOperation(edit.row)?.earliestDeadlineAt ?? null,
      estimateMicroUsd:
        chosen?.provider_key?.scope === 'workspace' ? 0 : (chosen?.quote?.max_charge_micro_usd ?? 0),
    },
  );
  edit.move('ready', AUTOMATION, {
    extension: attempt.extensionId,
    host: attempt.hostId,
    attempt: attempt.n,
  });
  return GO_ON;
}
