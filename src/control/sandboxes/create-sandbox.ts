import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import { isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import { unstaged } from '../../core/recipe/input-refs.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import type { ResolvedRecipe } from '../../core/recipe/resolve-recipe.ts';
import { recipeFingerprint, scopeKey } from '../../core/recipe/resolve-recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { pinKept } from '../assets/pin-kept.ts';
import { stageTrees } from '../assets/stage-trees.ts';
import type { Control } from '../control.ts';
import type { Claim } from '../lifecycle/lanes.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { rememberResult, replayedResult } from '../requests/idempotency.ts';
import { admitSandbox, recordedAdmission } from './admit-sandbox.ts';
import { earlyWhenWaiting } from './answers-early.ts';
import type { Establishment, WaitOptions } from './establish.ts';
import { establish } from './establish.ts';
import { planRoute, requireRoute } from './plan-route.ts';
import { quoteOf } from './quote-sandbox.ts';
import { recreateSandbox } from './recreate-sandbox.ts';
import { resolveRequest } from './resolve-request.ts';

export interface CreateOptions extends WaitOptions {
  readonly idempotencyKey?: string;
}

/** Whether a repeated create builds the sandbox anew: it failed, or is on its way to another try, and the cause may be gone. */
function isTriedAgain({ state, recreating }: SandboxRecord): boolean {
  return state === 'failed' || (state === 'destroying' && recreating);
}

/** A repeated client-chosen id is the same sandbox if it was the same request, and a clash otherwise. */
function sameIdAgain(existing: SandboxRecord, digest: string): SandboxRecord {
  const usable = isLiving(existing.state) || isTriedAgain(existing);
  if (usable && existing.requestDigest === digest) return existing;
  throw new SandboxerError(
    'SBX_ID_TAKEN',
    `The id "${existing.id}" belongs to a sandbox that is ${existing.state}.`,
    {
      field: 'id',
      creation: 'not_created',
      ...(usable ? {} : { remedy: 'Wait until it is destroyed, or choose another id.' }),
    },
  );
}

interface ExistingQuery {
  readonly request: CreateSandboxRequest;
  readonly digest: string;
  readonly reuseKey: string | null;
}

async function existingFor(
  tx: Tx,
  caller: Caller,
  { request, digest, reuseKey }: ExistingQuery,
): Promise<SandboxRecord | null> {
  if (request.id !== undefined) {
    const named = await tx.sandboxes.find(caller.workspaceId, request.id);
    if (named && named.state !== 'destroyed') return sameIdAgain(named, digest);
  }
  return reuseKey === null ? null : tx.sandboxes.findReusable(caller.workspaceId, reuseKey);
}

interface RecipeStaging {
  readonly request: CreateSandboxRequest;
  readonly options: CreateOptions;
  readonly digest: string;
  readonly resolved: ResolvedRecipe;
}

/**
 * Stages what the request names. Not when the transaction will answer with an existing sandbox, and not for a request that no
 * backend could take.
 */
async function stagedRecipe(
  deps: ControlPorts,
  caller: Caller,
  { request, options, digest, resolved: { recipe, trees } }: RecipeStaging,
): Promise<Recipe> {
  if (trees.length === 0) return recipe;
  const wanted = await deps.store.read('repetition', async (tx) => {
    const replayed = await replayedResult(tx, caller, {
      key: options.idempotencyKey,
      digest,
      kind: 'sandbox',
    });
    if (replayed !== null || (await existingFor(tx, caller, { request, digest, reuseKey: null })) !== null)
      return false;
    const expected = { ...recipe, trees: unstaged(trees) };
    requireRoute(
      await planRoute(tx, deps, {
        workspaceId: caller.workspaceId,
        recipe: expected,
        seed: 'before-staging',
      }),
    );
    return true;
  });
  if (!wanted) return recipe;
  const { profile } = deps.catalogue(caller.workspaceId).get(request.profile, request.profile_version);
  return { ...recipe, trees: await stageTrees(deps, caller, { profile, trees, signal: options.signal }) };
}

interface CreateSandbox extends CreateOptions {
  readonly request: CreateSandboxRequest;
}

/** SPEC §4 `create`: one read, one decision, one write; then the backend is called by the driver. */
export async function createSandbox(
  control: Control,
  caller: Caller,
  { request, ...options }: CreateSandbox,
): Promise<Establishment> {
  requireScope(caller, 'sandboxes');
  const digest = digestOf(request);
  const resolved = resolveRequest(control, caller, request);
  const { profile } = resolved;
  const pinned = { ...resolved, recipe: await pinKept(control, caller, resolved.recipe) };
  const recipe = await stagedRecipe(control, caller, { request, options, digest, resolved: pinned });
  const key = scopeKey(recipe.scope, request, caller, recipe.profileId);
  // A name of one's own asks for a sandbox of one's own.
  const shareable = key !== null && request.id === undefined;
  const reuseKey = shareable ? `${key}|${recipeFingerprint(recipe)}` : null;
  const uid = control.ids.next('sbx');
  let again: SandboxRecord | null = null;

  const admitted = await recordedTransaction(
    control,
    caller,
    recordedAdmission('create', 'createSandbox', earlyWhenWaiting(control, options)),
    async (tx): Promise<Claim | SandboxRecord> => {
      again = null;
      const replayed = await replayedResult(tx, caller, {
        key: options.idempotencyKey,
        digest,
        kind: 'sandbox',
      });
      if (replayed !== null) return (await tx.sandboxes.get(replayed)) as SandboxRecord;
      const existing = await existingFor(tx, caller, { request, digest, reuseKey });
      again = existing && isTriedAgain(existing) ? existing : null;
      if (again !== null) return again;
      const claim = existing
        ? null
        : await admitSandbox(tx, control, {
            uid,
            caller,
            request,
            requestDigest: digest,
            recipe,
            plan: await planRoute(tx, control, {
              workspaceId: caller.workspaceId,
              recipe,
              seed: uid,
              quote: await quoteOf(tx, control, caller, request),
            }),
            origin: { kind: 'recipe' },
            labels: { ...profile.labels, ...request.labels },
            reuseKey,
          });
      const result = existing ?? (claim as Claim).sandbox;
      await rememberResult(tx, control, caller, {
        key: options.idempotencyKey,
        digest,
        result: `sandbox:${result.uid}`,
      });
      return claim ?? result;
    },
  );
  // Under the same idempotency key the failure is repeated; the same id under another key is a new request.
  if (again !== null) {
    const { uid: failed, generation } = again as SandboxRecord;
    const alsoWrite = (tx: Tx) =>
      rememberResult(tx, control, caller, {
        key: options.idempotencyKey,
        digest,
        result: `sandbox:${failed}`,
      });
    return recreateSandbox(control, caller, { id: failed, ...options, generation, alsoWrite });
  }
  return establish(control, admitted, options);
}
