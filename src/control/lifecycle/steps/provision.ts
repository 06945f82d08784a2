import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { AttemptRecord } from '../../../core/lifecycle/attempt.ts';
import type { SandboxDocuments } from '../../../core/lifecycle/sandbox.ts';
import type {
  Extension,
  ExtensionContext,
  Handle,
  Progress,
  ProvisionSpec,
} from '../../../core/ports/extension.ts';
import type { Tx } from '../../../core/ports/store/store.ts';
import { inputTrees } from '../../assets/input-trees.ts';
import { contextFor, extensionOf } from '../../backends/backend-context.ts';
import { backendEndsAt } from '../../money/sandbox-money.ts';
import type { ControlPorts } from '../../ports/control-ports.ts';
import { isOutrun, judgeAttempt, replaceAttempt } from '../edit/attempt-edit.ts';
import { backendFailure } from '../edit/backend-error.ts';
import { failAttempt } from './fail-attempt.ts';
import { ProgressEvents } from './progress-events.ts';
import type { Step, StepSubject } from './step.ts';
import { GO_ON, provisionTimeoutMs, stampOf } from './step.ts';
import { secretsOf } from './step-secrets.ts';

export interface Provisioned {
  readonly handle: Handle;
  readonly at: number;
}

/** `isFirstCall`: the attempt was journalled by this very claim. Otherwise an earlier call may have created something. */
export function provisionStep(
  deps: ControlPorts,
  subject: StepSubject,
  attempt: AttemptRecord,
  isFirstCall: boolean,
): Step<Provisioned> {
  let doing: Progress | null = null;
  return {
    label: 'provision',
    timeoutMs: provisionTimeoutMs(deps, attempt),
    async call(signal) {
      const extension = extensionOf(deps, attempt.extensionId);
      const context = await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId);
      const spec = await provisionSpec(deps, subject, attempt, signal);
      const events = new ProgressEvents(deps, attempt);
      const progress = (happened: Progress) => {
        doing = happened;
        events.tell(happened);
      };
      try {
        const source = { deps, documents: subject.documents };
        const handle = await makeFrom(source, extension, spec, { ...context, progress });
        return { handle, at: deps.clock.now() };
      } finally {
        await events.written();
      }
    },
    async settle(scope, { handle, at }) {
      const wanted = scope.edit.row.state === 'provisioning';
      const made = { handle, provisionedAt: at, creation: 'created' } as const;
      if (wanted && !isOutrun(scope, attempt))
        await replaceAttempt(scope, attempt.attemptId, { ...made, state: 'provisioned' });
      else await judgeAttempt(scope, attempt.attemptId, 'caller', { ...made, state: 'condemned' });
      return GO_ON;
    },
    async fail(scope, error) {
      const failure = backendFailure(lateWork(error, doing), attempt.extensionId);
      // This call created nothing; an earlier call, whose answer was lost with its process, may have.
      const isAmbiguous = failure.creation === 'not_created' && !isFirstCall;
      return failAttempt(scope, attempt, isAmbiguous ? { ...failure, creation: 'maybe_created' } : failure);
    },
  };
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

async function provisionSpec(
  deps: ControlPorts,
  subject: StepSubject,
  attempt: AttemptRecord,
  signal: AbortSignal,
): Promise<ProvisionSpec> {
  const { sandbox, documents } = subject;
  const extension = extensionOf(deps, attempt.extensionId);
  const secrets = await secretsOf(deps, subject, extension, signal).catch((error: unknown) => {
    if (!(error instanceof SandboxerError)) throw error;
    throw new SandboxerError(error.code, error.detail, { ...error.extras, creation: 'not_created' });
  });
  return {
    stamp: stampOf(deps, attempt),
    sandboxId: sandbox.id,
    workspaceId: sandbox.workspaceId,
    generation: sandbox.generation,
    recipe: documents.recipe,
    labels: sandbox.labels,
    secrets,
    inputs: inputTrees(deps, sandbox),
    endsAt: backendEndsAt(deps, sandbox, extension, documents.plan),
  };
}

async function makeFrom(
  { deps, documents: { origin } }: { readonly deps: ControlPorts; readonly documents: SandboxDocuments },
  extension: Extension,
  spec: ProvisionSpec,
  context: ExtensionContext,
): Promise<Handle> {
  if (origin.kind === 'recipe') return extension.provision(spec, context);
  if (origin.kind === 'snapshot' && extension.restore) return extension.restore(spec, origin.ref, context);
  if (origin.kind === 'fork' && extension.fork)
    return extension.fork(await forkSource(deps, origin.sourceUid), spec, context).catch(sourceIsGone);
  const detail = `${extension.header.id} cannot start from a ${origin.kind}.`;
  throw new SandboxerError('SBX_UNSUPPORTED', detail, { creation: 'not_created' });
}

/** The read does not wait for the disk: the outcome of the fork is written by a commit of its own. */
async function forkSource(deps: ControlPorts, sourceUid: string): Promise<Handle> {
  const find = (tx: Tx) => tx.sandboxes.get(sourceUid);
  const source = await deps.store.read('fork-source', find, { answersEarly: true });
  if (source?.handle) return source.handle;
  throw new SandboxerError('SBX_GONE', 'The sandbox to fork from is gone.', { creation: 'not_created' });
}

/** A source that ended meanwhile is not the backend's fault. */
function sourceIsGone(error: unknown): never {
  if (!(error instanceof SandboxerError) || error.code !== 'SBX_BACKEND_LOST') throw error;
  throw new SandboxerError('SBX_GONE', `The sandbox to fork from is gone: ${error.detail}`, error.extras);
}
