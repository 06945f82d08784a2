import type { SnapshotCause, SnapshotState } from '../../contract/assets/snapshot.ts';
import type { SnapshotKind } from '../../contract/extensions/capability.ts';
import type { Consumer } from '../../contract/sandboxes/sandbox.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Actor } from '../../contract/values/state.ts';
import type { Recipe } from '../recipe/recipe.ts';

export interface SnapshotRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly version: number;
  readonly name: string | null;
  readonly sandboxUid: string;
  readonly sandboxId: string;
  readonly generation: number;
  readonly profileId: string;
  readonly profileVersion: string;
  readonly recipe: Recipe;
  readonly extensionId: string;
  readonly hostId: string | null;
  readonly kind: SnapshotKind;
  readonly state: SnapshotState;
  /** The backend's own reference; `null` until it exists. */
  readonly ref: Json;
  readonly sizeBytes: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly actor: Actor;
  readonly consumer: Consumer;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly eventSeq: number;
  readonly deletedAt: number | null;
  readonly cause: SnapshotCause;
  /** The digest of the whole content, where the backend knows it. */
  readonly digest: string | null;
  /** The vendor's key that it was taken with, and that restores and deletes it. */
  readonly providerKeyId: string | null;
}
