import type { RestoreRequest } from '../../contract/assets/snapshot.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ForkRequest } from '../../contract/sandboxes/sandbox.ts';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import { isEstablished } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxOrigin, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { Claim } from '../lifecycle/lanes.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';
import { rememberResult, replayedResult } from '../requests/idempotency.ts';
import { findSnapshot } from '../snapshots/find-snapshot.ts';
import { admitSandbox, recordedAdmission } from './admit-sandbox.ts';
import { earlyWhenWaiting } from './answers-early.ts';
import type { CreateOptions } from './create-sandbox.ts';
import type { Establishment } from './establish.ts';
import { establish } from './establish.ts';
import { planRoute } from './plan-route.ts';

/** The source of a new sandbox that is not made from a profile. */
interface Source {
  readonly origin: Extract<SandboxOrigin, { kind: 'snapshot' | 'fork' }>;
  readonly recipe: Recipe;
  readonly consumer: SandboxRecord['consumer'];
  readonly labels: Readonly<Record<string, string>>;
  /** The host that has the source; `null` when any host will do. */
  readonly hostId: string | null;
  /** The account at the vendor that has it; `null` for the backend's own. */
  readonly providerKeyId: string | null;
}

const onHosts = (deps: ControlPorts, extensionId: string): boolean =>
  deps.extensions.get(extensionId)?.header.runsOn === 'hosts';

function withTtl(recipe: Recipe, ttl: number | undefined): Recipe {
  if (ttl === undefined) return recipe;
  if (ttl > recipe.maxTtlSeconds) {
    throw new SandboxerError(
      'SBX_INVALID_REQUEST',
      `ttl is at most ${recipe.maxTtlSeconds} s for this profile.`,
      {
        field: 'ttl',
        creation: 'not_created',
        remedy: `Ask for at most ${recipe.maxTtlSeconds} s.`,
      },
    );
  }
  return { ...recipe, ttlSeconds: ttl };
}

/** Refuses mounts that the administrator of this machine was granted, for any other caller. */
function requireOwnMounts({ mounts }: Recipe, caller: Caller): void {
  if (caller.local || (mounts ?? []).length === 0) return;
  throw new SandboxerError(
    'SBX_REF_REFUSED',
    'Only the administrator on the unix socket may mount directories of the server.',
    {
      creation: 'not_created',
      remedy: 'Have the administrator of the server do it, on its unix socket.',
    },
  );
}

interface Derivation {
  readonly request: RestoreRequest | ForkRequest;
  readonly options: CreateOptions;
  readonly label: string;
  readonly sourceOf: (tx: Tx) => Promise<Source>;
}

async function derive(
  control: Control,
  caller: Caller,
  { request, options, label, sourceOf }: Derivation,
): Promise<Establishment> {
  requireScope(caller, 'sandboxes');
  const uid = control.ids.next('sbx');
  const action = label === 'fork' ? 'forkSandbox' : 'restoreSnapshot';
  const admitted = await recordedTransaction(
    control,
    caller,
    recordedAdmission(label, action, earlyWhenWaiting(control, options)),
    async (tx): Promise<Claim | SandboxRecord> => {
      const source = await sourceOf(tx);
      const digest = digestOf({ [label]: source.origin, request });
      const replayed = await replayedResult(tx, caller, {
        key: options.idempotencyKey,
        digest,
        kind: 'sandbox',
      });
      if (replayed !== null) return (await tx.sandboxes.get(replayed)) as SandboxRecord;
      const recipe = withTtl(source.recipe, request.ttl);
      requireOwnMounts(recipe, caller);
      const claim = await admitSandbox(tx, control, {
        uid,
        caller,
        request: {
          ...(request.id === undefined ? {} : { id: request.id }),
          profile: recipe.profileId,
          profile_version: recipe.profileVersion,
          inputs: {},
          consumer: source.consumer,
          labels: request.labels ?? {},
          elevated: recipe.elevated,
        },
        requestDigest: digest,
        recipe,
        plan: await planRoute(tx, control, {
          workspaceId: caller.workspaceId,
          recipe,
          seed: uid,
          boundTo: source.origin.extensionId,
          boundHost: source.hostId,
          boundKey: source.providerKeyId,
        }),
        origin: source.origin,
        labels: request.labels ?? source.labels,
        reuseKey: null,
      });
      await rememberResult(tx, control, caller, {
        key: options.idempotencyKey,
        digest,
        result: `sandbox:${uid}`,
      });
      return claim;
    },
  );
  return establish(control, admitted, options);
}

interface RestoreSnapshot extends CreateOptions {
  readonly snapshotId: string;
  readonly request: RestoreRequest;
}

/** A new sandbox with the content that the snapshot has. */
export function restoreSnapshot(
  control: Control,
  caller: Caller,
  { snapshotId, request, ...options }: RestoreSnapshot,
): Promise<Establishment> {
  return derive(control, caller, {
    request,
    options,
    label: 'restore',
    sourceOf: async (tx) => {
      const snapshot = await findSnapshot(tx, caller, snapshotId);
      if (snapshot.state !== 'available') {
        throw new SandboxerError(
          'SBX_INVALID_STATE',
          `A snapshot that is ${snapshot.state} cannot be restored.`,
          {
            creation: 'not_created',
          },
        );
      }
      const { extensionId, ref } = snapshot;
      return {
        origin: { kind: 'snapshot', snapshotId: snapshot.id, extensionId, ref },
        recipe: snapshot.recipe,
        consumer: snapshot.consumer,
        labels: snapshot.labels,
        hostId: onHosts(control, extensionId) ? snapshot.hostId : null,
        providerKeyId: snapshot.providerKeyId,
      };
    },
  });
}

interface ForkSandbox extends CreateOptions {
  readonly id: string;
  readonly request: ForkRequest;
}

/** A new sandbox with the content that the source has now. The source lives on. */
export function forkSandbox(
  control: Control,
  caller: Caller,
  { id, request, ...options }: ForkSandbox,
): Promise<Establishment> {
  return derive(control, caller, {
    request,
    options,
    label: 'fork',
    sourceOf: async (tx) => {
      const source = await findSandbox(tx, caller, id);
      if (!isEstablished(source.state)) {
        throw new SandboxerError('SBX_INVALID_STATE', `A sandbox that is ${source.state} cannot be forked.`, {
          creation: 'not_created',
        });
      }
      const extensionId = source.extensionId as string;
      if (!control.extensions.get(extensionId)?.fork) {
        throw new SandboxerError('SBX_UNSUPPORTED', `${extensionId} cannot fork a sandbox.`, {
          backend: extensionId,
          creation: 'not_created',
        });
      }
      const attempt = await tx.attempts.get(
        attemptIdOf(source.uid, source.generation, source.attempt as number),
      );
      const { recipe } = (await tx.sandboxes.documents(source.uid, source.generation)) as SandboxDocuments;
      return {
        origin: { kind: 'fork', sourceUid: source.uid, extensionId, hostId: source.hostId },
        recipe,
        consumer: source.consumer,
        labels: source.labels,
        hostId: onHosts(control, extensionId) ? source.hostId : null,
        providerKeyId: attempt?.providerKeyId ?? null,
      };
    },
  });
}
