import { SandboxerError } from '../../contract/errors.ts';
import type { AttemptRecord } from '../../core/attempt.ts';
import { offerIn } from '../../core/credits/terms.ts';
import type {
  CleanupReport,
  Extension,
  ExtensionContext,
  Handle,
  Progress,
  ProvisionSpec,
  Ready,
  ResolvedSecret,
  Stamp,
  TakenSnapshot,
} from '../../core/extension.ts';
import { startDirectory } from '../../core/inputs.ts';
import type { Recipe } from '../../core/recipe.ts';
import type { SandboxDocuments, SandboxOperation, SandboxRecord } from '../../core/sandbox.ts';
import type { SetupStep } from '../../core/setup-log.ts';
import type { Tx } from '../../core/store.ts';
import { inputTrees } from '../assets/input-trees.ts';
import { contextFor, contextOf, extensionOf } from '../backends/backend-context.ts';
import type { ControlDeps } from '../deps.ts';
import { backendEndsAt } from '../money/sandbox-money.ts';
import { placeInputs } from './place-inputs.ts';
import { ProgressEvents } from './progress-events.ts';
import { runSetup } from './run-setup.ts';

/** The backend calls behind each step. Nothing here writes to the store but how far a call is. */

function stampOf(deps: ControlDeps, attempt: AttemptRecord): Stamp {
  return { sandboxUid: attempt.sandboxUid, attemptId: attempt.attemptId, owner: deps.owner };
}

/** Their values, as they are now. */
async function secretsOf(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  { recipe }: SandboxDocuments,
  { header }: Extension,
  signal: AbortSignal,
): Promise<readonly ResolvedSecret[]> {
  if (recipe.secretRefs.length === 0) return [];
  return await deps.resolveSecrets(sandbox.workspaceId, recipe.secretRefs, header.capabilities, signal);
}

async function provisionSpec(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  attempt: AttemptRecord,
  documents: SandboxDocuments,
  extension: Extension,
  signal: AbortSignal,
): Promise<ProvisionSpec> {
  const { recipe } = documents;
  const secrets = await secretsOf(deps, sandbox, documents, extension, signal).catch((error: unknown) => {
    if (!(error instanceof SandboxerError)) throw error;
    throw new SandboxerError(error.code, error.detail, { ...error.extras, creation: 'not_created' });
  });
  return {
    stamp: stampOf(deps, attempt),
    sandboxId: sandbox.id,
    workspaceId: sandbox.workspaceId,
    generation: sandbox.generation,
    recipe,
    labels: sandbox.labels,
    secrets,
    inputs: inputTrees(deps, sandbox),
    endsAt: backendEndsAt(deps, sandbox, extension, documents.plan),
  };
}

/** Whatever comes of it is told by a commit of its own: this need not wait for the disk. */
async function forkSource(deps: ControlDeps, sourceUid: string): Promise<Handle> {
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

export interface ProvisionWatch {
  readonly signal: AbortSignal;
  /** Called at every step that the backend tells. */
  tell(progress: Progress): void;
}

export async function performProvision(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  attempt: AttemptRecord,
  documents: SandboxDocuments,
  { signal, tell }: ProvisionWatch,
): Promise<Handle> {
  const extension = extensionOf(deps, attempt.extensionId);
  const context = await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId);
  const spec = await provisionSpec(deps, sandbox, attempt, documents, extension, signal);
  const events = new ProgressEvents(deps, attempt);
  try {
    const progress = (happened: Progress) => {
      tell(happened);
      events.tell(happened);
    };
    return await makeFrom(deps, documents, extension, spec, { ...context, progress });
  } finally {
    await events.written();
  }
}

async function makeFrom(
  deps: ControlDeps,
  { origin }: SandboxDocuments,
  extension: Extension,
  spec: ProvisionSpec,
  context: ExtensionContext,
): Promise<Handle> {
  if (origin.kind === 'snapshot' && extension.restore) return extension.restore(spec, origin.ref, context);
  if (origin.kind === 'fork' && extension.fork)
    return extension.fork(await forkSource(deps, origin.sourceUid), spec, context).catch(sourceIsGone);
  if (origin.kind !== 'recipe') {
    throw new SandboxerError(
      'SBX_UNSUPPORTED',
      `${extension.header.id} cannot start from a ${origin.kind}.`,
      {
        creation: 'not_created',
      },
    );
  }
  return extension.provision(spec, context);
}

/** Values that the setup commands can see: what they write is kept, and those must not be. */
async function exposedValues(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  recipe: Recipe,
  extension: Extension,
  signal: AbortSignal,
): Promise<string[]> {
  const exposed = recipe.secretRefs.filter(({ delivery }) => delivery !== 'broker');
  if (exposed.length === 0) return [];
  const { capabilities } = extension.header;
  const secrets = await deps.resolveSecrets(sandbox.workspaceId, exposed, capabilities, signal);
  return secrets.map(({ value }) => value);
}

/** Reachable, and set up as the recipe says. Setup may run again after a crash: before `ready`, nobody has seen it. */
export async function performProbe(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  attempt: AttemptRecord,
  documents: SandboxDocuments,
  signal: AbortSignal,
  steps: SetupStep[],
): Promise<Ready> {
  const extension = extensionOf(deps, attempt.extensionId);
  const context = await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId);
  const handle = attempt.handle as Handle;
  const ready = await extension.waitReady(handle, context);
  const { recipe, origin } = documents;
  const shipped = extension.header.shipsInputs;
  const places = shipped === 'read-only' ? recipe.workspace.access !== 'ro' : !shipped;
  if (origin.kind === 'recipe' && places) {
    await placeInputs(extension, handle, inputTrees(deps, sandbox), context);
  }
  if (recipe.setupRun.length > 0 && origin.kind === 'recipe')
    await runSetup(extension, handle, recipe, context, {
      cwd: startDirectory(sandbox, extension.header),
      secrets: await exposedValues(deps, sandbox, recipe, extension, signal),
      now: () => deps.clock.now(),
      steps,
    });
  return ready;
}

export async function performTeardown(
  deps: ControlDeps,
  attempt: AttemptRecord,
  signal: AbortSignal,
): Promise<CleanupReport> {
  const extension = extensionOf(deps, attempt.extensionId);
  const target = { stamp: stampOf(deps, attempt), handle: attempt.handle };
  return extension.teardown(target, await contextFor(deps, attempt.hostId, signal, attempt.providerKeyId));
}

export type OperationOutcome =
  | { readonly kind: 'pause'; readonly pauseKind: 'frozen' | 'stopped' }
  | { readonly kind: 'resume' | 'extend' }
  | { readonly kind: 'snapshot'; readonly taken: TakenSnapshot };

export async function performOperation(
  deps: ControlDeps,
  sandbox: SandboxRecord,
  operation: SandboxOperation,
  documents: SandboxDocuments,
  signal: AbortSignal,
): Promise<OperationOutcome> {
  const extension = extensionOf(deps, sandbox.extensionId as string);
  const context = await contextOf(deps, sandbox, signal);
  const handle = sandbox.handle as Handle;
  const unsupported = () =>
    new SandboxerError('SBX_UNSUPPORTED', `${extension.header.id} cannot ${operation.kind}.`, {
      backend: extension.header.id,
    });
  switch (operation.kind) {
    case 'pause':
      if (!extension.pause) throw unsupported();
      return { kind: 'pause', pauseKind: await extension.pause(handle, context) };
    case 'resume':
      if (!extension.resume) throw unsupported();
      await extension.resume(
        handle,
        context,
        sandbox.pauseKind === 'stopped' ? await secretsOf(deps, sandbox, documents, extension, signal) : [],
      );
      return { kind: 'resume' };
    case 'extend': {
      // What is paid for in stretches has its end moved with each of them.
      if (!offerIn(documents.plan, extension).leased)
        await extension.extendLife?.(
          handle,
          backendEndsAt(deps, sandbox, extension, documents.plan),
          context,
        );
      return { kind: 'extend' };
    }
    case 'snapshot': {
      if (!extension.snapshot) throw unsupported();
      const spec = { snapshotId: operation.snapshotId as string, name: null, owner: deps.owner };
      return { kind: 'snapshot', taken: await extension.snapshot(handle, spec, context) };
    }
  }
}
