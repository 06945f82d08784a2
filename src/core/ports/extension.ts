/**
 * The contract between sand-boxer and a backend. Implement `Extension`, run the conformance suite of
 * `sand-boxer/testing` on it, and it can be routed to.
 *
 * Obligations that hold for every method:
 * - `ctx.signal` aborts: stop and reject soon. What was begun is then swept by `teardown` with the same stamp.
 * - Errors are `SandboxerError`s with `creation` where a create was involved. Anything else that is thrown counts as
 *   `maybe_created`.
 * - No secret in an error, a log field, a handle, a report or an argument vector.
 */

import type { ImageConfig, ImageSource } from '../../contract/assets/image.ts';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import type { CapabilityVector, IsolationLevel } from '../../contract/extensions/capability.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { IsolationFacts } from '../../contract/extensions/isolation.ts';
import type { Price } from '../../contract/money/money.ts';
import type { InputSchemas } from '../../contract/profiles/inputs.ts';
import type { Reachability } from '../../contract/sandboxes/sandbox.ts';
import type { StackPlan } from '../../contract/sandboxes/stack-plan.ts';
import type { Json } from '../../contract/values/json.ts';
import type { PauseKind } from '../../contract/values/state.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { Clock } from './clock.ts';
import type { SshAccess } from './host-access.ts';
import type { InputTrees } from './inputs.ts';
import type { Log } from './log.ts';
import type { SandboxSession } from './session.ts';
import type { Handle } from './versioned-handle.ts';

export type { ExtensionDefinition, ExtensionServices, SecretPlace } from './extension-definition.ts';
export { defineExtension } from './extension-definition.ts';
export type { Handle, HandleUpgrade, VersionedHandle } from './versioned-handle.ts';
export { versionedHandle } from './versioned-handle.ts';

/** Identifies one attempt at one sandbox, stamped on whatever the backend creates, before or as it is created. */
export interface Stamp {
  readonly sandboxUid: string;
  readonly attemptId: string;
  /** The name of this installation of sand-boxer: an object with another owner's name is never touched. */
  readonly owner: string;
}

/**
 * `env` puts the value into the variable of that name. `file` puts it into `/run/secrets/<name>`, or into the file that
 * the variable `<name>_FILE` names. `broker` leaves a placeholder inside.
 */
export interface ResolvedSecret {
  readonly name: string;
  readonly delivery: 'broker' | 'file' | 'env';
  readonly value: string;
}

export interface ProvisionSpec {
  readonly stamp: Stamp;
  readonly sandboxId: string;
  readonly workspaceId: string;
  readonly generation: number;
  /** The recipe to build. `instructions` and `instructionsRef` are prose for a bootstrap program; no part of sand-boxer runs them. */
  readonly recipe: Recipe;
  readonly labels: Readonly<Record<string, string>>;
  readonly secrets: readonly ResolvedSecret[];
  /** File trees of the request: for backends whose header says `shipsInputs`. For the others they are put in place over the session. */
  readonly inputs: InputTrees;
  /** When the backend must end the sandbox by itself, if its vector declares `dead_man`. */
  readonly endsAt: number;
}

export interface PlacementHost {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `null` for the machine that sand-boxer itself runs on. */
  readonly ssh: SshAccess | null;
}

/** The progress of a long call, shown to those who wait for it. */
export interface Progress {
  /** The current stage, in one word: `pull`. */
  readonly stage: string;
  /** The subject of the stage: the name of an image. */
  readonly subject: string;
  readonly phase: 'begun' | 'going' | 'done';
  readonly bytes: Amount;
  /** The parts of the work, such as the layers of an image. */
  readonly parts: Amount;
}

export interface Amount {
  readonly done: number;
  /** The total as far as it is known: it may grow. */
  readonly total: number;
}

export interface ExtensionContext {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
  /** The host of the sandbox; `null` for a backend that has no hosts of ours. */
  readonly host: PlacementHost | null;
  /** The vendor's key of the party that pays; left out, the backend's own configuration is used. */
  readonly key?: string;
  /**
   * Reports progress for the sandbox's events. May be called at every step: most reports are dropped. Left out where no caller
   * listens.
   */
  readonly progress?: (progress: Progress) => void;
}

export interface Ready {
  readonly reachability: Reachability;
  /** The level in force, which may be above what was asked for. */
  readonly isolation: string;
  /** Notes for the users of this very sandbox: a limit not enforced here, root inside is root outside … */
  readonly notes: readonly string[];
}

export interface TeardownTarget {
  readonly stamp: Stamp;
  /** `null` when the reply of the create was lost: the stamp must be enough. */
  readonly handle: Handle | null;
}

/** The use by its programs since it was made, as far as the backend counts it. */
export interface UsedSoFar {
  readonly cpuMs?: number;
  readonly peakMemoryMb?: number;
}

export interface CleanupReport {
  /** The backend was asked and has nothing left under this stamp. */
  readonly gone: boolean;
  readonly removed: readonly string[];
  readonly remaining: readonly { readonly what: string; readonly reason: string }[];
  /** The whole use, where the backend counted it to the end. */
  readonly used?: UsedSoFar;
}

export interface Owned {
  readonly stamp: Stamp;
  readonly handle: Handle | null;
  readonly createdAt: number | null;
  /**
   * `stopped`: nothing of it runs, its disk is kept and `resume` starts it again. `ended`: nothing of it runs and nothing will;
   * only `teardown` is left. Left out where the backend does not report it: it runs.
   */
  readonly condition?: 'running' | 'stopped' | 'ended';
  /** Whether its existing parts are paused; left out where the backend does not report it. */
  readonly paused?: boolean;
  /** The existing parts, in words, where there may be several: `container 3f2a`, `network …`. */
  readonly parts?: readonly string[];
}

/** The reason why a backend ended a sandbox without a request. */
export interface EndedFor {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly remedy: string;
}

/** An object that carries a mark like ours and is not known to be ours. There is no stamp: it cannot be torn down. */
export interface Unowned {
  /** The owner that the mark names; `null` when it names none. */
  readonly owner: string | null;
  readonly what: string;
  readonly parts: readonly string[];
  readonly createdAt: number | null;
}

/** A snapshot that carries our mark, whole or not. */
export interface OwnedSnapshot {
  readonly snapshotId: string;
  readonly createdAt: number | null;
  readonly parts: readonly string[];
}

/** A tree to make a sandbox of, and a program that is there. */
export interface CanaryKit {
  readonly inputs: InputTrees;
  readonly argv: readonly string[];
}

export interface SnapshotSpec {
  readonly snapshotId: string;
  readonly name: string | null;
  readonly owner: string;
}

export interface TakenSnapshot {
  readonly ref: Json;
  readonly sizeBytes: number | null;
  /** The digest of the whole content, where it is known without reading all of it. */
  readonly digest?: string | null;
}

export interface ExportedSnapshot {
  readonly digest: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface ImageSpec {
  readonly imageId: string;
  readonly owner: string;
  /** The most bytes of the unpacked content. */
  readonly maxBytes: number;
}

export interface ImportedImage {
  readonly digest: string;
  readonly sizeBytes: number;
  readonly architecture: string;
  readonly source: ImageSource;
  readonly config: ImageConfig;
}

export interface VolumeSpec {
  readonly volumeId: string;
  readonly owner: string;
  readonly sizeMb: number | null;
}

export interface DebianRecipe {
  readonly suite: string;
  readonly packages: readonly string[];
}

export interface ExtensionHeader {
  readonly id: string;
  readonly title: string;
  /** Raised when the shape of `Handle.data` changes; older handles must still be understood. */
  readonly handleVersion: number;
  readonly capabilities: CapabilityVector;
  /** By isolation level that it does not offer here: the reason, and a remedy. */
  readonly remedies?: Readonly<Partial<Record<IsolationLevel, string>>>;
  /** `hosts`: each sandbox is placed on a registered host, which every call gets. Default: here, or at the vendor. */
  readonly runsOn?: 'hosts';
  /** The prices of the backend; `null` when it charges nothing. */
  readonly price: Price | null;
  /** How long one attempt may take before it is given up. */
  readonly provisionTimeoutSeconds: number;
  /** Inputs that it takes besides file trees, `mounts`, `elevated` and `warm`. An input that is not listed is refused. */
  readonly inputs?: InputSchemas;
  /** The backend makes a sandbox only of one of these inputs: a request without any is not for it. */
  readonly needsInput?: readonly string[];
  /**
   * Whether the sandboxes end when the server's machine does, disks that are to last apart: a step that a power cut makes undone
   * has left nothing that runs.
   */
  readonly endsWithMachine?: boolean;
  /** Whether `provision` itself puts `spec.inputs` where they belong: always, or where the workspace is read-only. */
  readonly shipsInputs?: boolean | 'read-only';
}

/** A declared capability and its method exist together: the suite checks both directions. */
export interface Extension {
  readonly header: ExtensionHeader;
  /** Checks whether the backend can be used from here, now. A refusal names what is missing and how to get it. */
  probe(ctx: ExtensionContext): Promise<ExtensionHealth>;
  /**
   * Whether the vendor takes `ctx.key`: rejects with `SBX_BACKEND_AUTH` when it does not. Exists where `ctx.key` is used;
   * every other method then uses the key of its own context and no other.
   */
  checkKey?(ctx: ExtensionContext): Promise<void>;
  /** Idempotent on `spec.stamp.attemptId`: called twice, there is one resource and one handle. */
  provision(spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle>;
  /** A real probe: resolves once a command could be run inside. */
  waitReady(handle: Handle, ctx: ExtensionContext): Promise<Ready>;
  connect(handle: Handle, ctx: ExtensionContext): Promise<SandboxSession>;
  /** Idempotent, verified; nothing there is success. */
  teardown(target: TeardownTarget, ctx: ExtensionContext): Promise<CleanupReport>;
  /** Lists everything at the backend that carries our owner stamp, in whatever state. */
  listOwned(owner: string, ctx: ExtensionContext): AsyncIterable<Owned>;
  /** Lists objects marked as `listOwned` expects them, but for another owner or for none: they are shown and left alone. */
  listUnowned?(owner: string, ctx: ExtensionContext): AsyncIterable<Unowned>;
  /** Idempotent. */
  pause?(handle: Handle, ctx: ExtensionContext): Promise<PauseKind>;
  /** Idempotent. `secrets`: those of a sandbox that was stopped, whose memory is gone. */
  resume?(handle: Handle, ctx: ExtensionContext, secrets?: readonly ResolvedSecret[]): Promise<void>;
  /** Idempotent on `spec.snapshotId`. */
  snapshot?(handle: Handle, spec: SnapshotSpec, ctx: ExtensionContext): Promise<TakenSnapshot>;
  /** Idempotent; nothing there is success. `ref` is `null` when the reply of the snapshot was lost. Exists wherever `snapshot` does. */
  deleteSnapshot?(ref: Json | null, spec: SnapshotSpec, ctx: ExtensionContext): Promise<void>;
  /** Lists every snapshot that carries our owner stamp: `deleteSnapshot` without a reference removes it. */
  listSnapshots?(owner: string, ctx: ExtensionContext): AsyncIterable<OwnedSnapshot>;
  /** The bytes of one that was taken without knowing them. */
  measureSnapshot?(ref: Json, spec: SnapshotSpec, ctx: ExtensionContext): Promise<number>;
  /** Returns the whole snapshot as one stream, which `importSnapshot` of the same extension takes, elsewhere too. */
  exportSnapshot?(ref: Json, spec: SnapshotSpec, ctx: ExtensionContext): Promise<ExportedSnapshot>;
  /** Trusts nothing in the stream. Exists wherever `exportSnapshot` does. */
  importSnapshot?(
    spec: SnapshotSpec,
    body: AsyncIterable<Uint8Array>,
    ctx: ExtensionContext,
  ): Promise<TakenSnapshot>;
  /** Like `provision`, from a snapshot's reference. */
  restore?(spec: ProvisionSpec, ref: Json, ctx: ExtensionContext): Promise<Handle>;
  /** Like `provision`, from a living sandbox. */
  fork?(source: Handle, spec: ProvisionSpec, ctx: ExtensionContext): Promise<Handle>;
  /** Moves the time at which the backend ends it by itself. Exists with `dead_man: extendable`. */
  extendLife?(handle: Handle, endsAt: number, ctx: ExtensionContext): Promise<void>;
  /** Returns why the sandbox ended by itself, where the backend knows; `null` for anything else, also while it runs. */
  whyEnded?(handle: Handle, ctx: ExtensionContext): Promise<EndedFor | null>;
  /** The backend's own figure of what was used so far, where it keeps one. */
  usage?(handle: Handle, ctx: ExtensionContext): Promise<{ readonly billedSeconds: number }>;
  /** Returns the use so far. Cheap: every living sandbox is measured again and again. The figures make estimates better. */
  measure?(handle: Handle, ctx: ExtensionContext): Promise<UsedSoFar>;
  /**
   * Stores an image that was packed elsewhere: every digest in it is checked, nothing in it is trusted. Exists, with
   * `deleteImage`, where the vector's `images` has `imported`.
   */
  importImage?(
    spec: ImageSpec,
    body: AsyncIterable<Uint8Array>,
    ctx: ExtensionContext,
  ): Promise<ImportedImage>;
  /** Makes one from packages. */
  buildImage?(spec: ImageSpec, recipe: DebianRecipe, ctx: ExtensionContext): Promise<ImportedImage>;
  /** Idempotent; nothing there is success. Sandboxes made from the image go on. */
  deleteImage?(imageId: string, owner: string, ctx: ExtensionContext): Promise<void>;
  /** Idempotent on `spec.volumeId`. Exists, with `deleteVolume`, where the vector has `volumes`. */
  createVolume?(spec: VolumeSpec, ctx: ExtensionContext): Promise<void>;
  /** Idempotent; nothing there is success; refused while a sandbox has it. */
  deleteVolume?(volumeId: string, owner: string, ctx: ExtensionContext): Promise<void>;
  /** Returns the isolation in force for this very sandbox, read where it is enforced. */
  inspectIsolation?(handle: Handle, ctx: ExtensionContext): Promise<IsolationFacts>;
  /** Plans the compose stack of a request: nothing is asked of any host. */
  planStack?(spec: ProvisionSpec, signal: AbortSignal): Promise<StackPlan>;
  /** Returns the inputs of a trial on the host of `ctx`. Exists wherever the header has `needsInput`, to be tried at all. */
  canary?(ctx: ExtensionContext): Promise<CanaryKit>;
  /** Releases what the extension itself holds open. */
  close?(): Promise<void>;
}
