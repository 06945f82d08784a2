import type { MeterRecord } from '../../core/credits/meter.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { SetupLog } from '../../core/lifecycle/setup-log.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import { findSandbox } from '../requests/find-sandbox.ts';

export interface SandboxView {
  readonly sandbox: SandboxRecord;
  /** The attempt that is being torn down, if there is one. */
  readonly teardown: AttemptRecord | null;
}

async function teardownOf(attempts: readonly AttemptRecord[]): Promise<AttemptRecord | null> {
  return attempts.find((attempt) => attempt.teardownTries > 0 && attempt.state !== 'gone') ?? null;
}

export async function getSandbox(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SandboxView> {
  requireScope(caller, 'read');
  return control.store.read('get', async (tx) => {
    const sandbox = await findSandbox(tx, caller, id);
    const settled =
      sandbox.state !== 'destroying' && sandbox.state !== 'provisioning' && sandbox.state !== 'failed';
    return {
      sandbox,
      teardown: settled ? null : await teardownOf(await tx.attempts.forSandbox(sandbox.uid)),
    };
  });
}

export interface RouteView {
  readonly documents: SandboxDocuments;
  readonly attempts: readonly AttemptRecord[];
}

/** Explains the placement of a sandbox: the stored decision and every attempt. */
export async function explainRoute(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<RouteView> {
  requireScope(caller, 'read');
  return control.store.read('route', async (tx) => {
    const sandbox = await findSandbox(tx, caller, id);
    const documents = (await tx.sandboxes.documents(sandbox.uid, sandbox.generation)) as SandboxDocuments;
    return { documents, attempts: await tx.attempts.forSandbox(sandbox.uid) };
  });
}

export async function sandboxUsage(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<{ sandbox: SandboxRecord; meters: readonly MeterRecord[] }> {
  requireScope(caller, 'read');
  return control.store.read('usage', async (tx) => {
    const sandbox = await findSandbox(tx, caller, id);
    return { sandbox, meters: await tx.meters.forSandbox(sandbox.uid) };
  });
}

/** The setup of a sandbox: its instructions, and the output of the setup commands of each attempt. */
export interface SetupView {
  readonly recipe: Pick<Recipe, 'instructions' | 'instructionsRef'>;
  readonly logs: readonly SetupLog[];
}

export async function sandboxSetup(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<SetupView> {
  requireScope(caller, 'read');
  return control.store.read('setup', async (tx) => {
    const sandbox = await findSandbox(tx, caller, id);
    const { recipe } = (await tx.sandboxes.documents(sandbox.uid, sandbox.generation)) as SandboxDocuments;
    return { recipe, logs: await tx.attempts.setups(sandbox.uid) };
  });
}
