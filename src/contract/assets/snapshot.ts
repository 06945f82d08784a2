import { z } from 'zod';
import { SnapshotKind } from '../extensions/capability.ts';
import { DurationSeconds } from '../values/duration.ts';
import { SandboxId } from '../values/ids.ts';
import { Labels } from '../values/json.ts';

export const SnapshotState = z.enum(['creating', 'available', 'failed', 'deleting', 'deleted']);
export type SnapshotState = z.infer<typeof SnapshotState>;

/** Why a snapshot was taken: on request, because its sandbox fell idle or came to its end, or by import of a file. */
export const SnapshotCause = z.enum(['request', 'idle', 'ttl', 'credits', 'import']);
export type SnapshotCause = z.infer<typeof SnapshotCause>;

export const SnapshotRequest = z
  .strictObject({
    name: z.string().max(128).optional(),
    labels: Labels.default({}),
    retain: DurationSeconds.optional().describe(
      'Deleted by us after this time; kept until deleted when left out.',
    ),
  })
  .meta({ id: 'SnapshotRequest' });
export type SnapshotRequest = z.infer<typeof SnapshotRequest>;

export const Snapshot = z
  .strictObject({
    snapshot_id: z.string(),
    workspace_id: z.string(),
    name: z.string().nullable(),
    sandbox_id: z.string(),
    generation: z.number().int(),
    profile: z.string(),
    profile_version: z.string(),
    extension: z.string(),
    kind: SnapshotKind,
    state: SnapshotState,
    size_bytes: z.number().int().nullable(),
    cause: SnapshotCause.describe('Why it was taken. `idle`, `ttl` and `credits` are checkpoints.'),
    digest: z
      .string()
      .nullable()
      .describe('Of all that is in it, once all of it was read: when it was imported or exported.'),
    labels: z.record(z.string(), z.string()),
    created_at: z.string(),
    expires_at: z.string().nullable(),
    deleted_at: z.string().nullable(),
  })
  .meta({ id: 'Snapshot' });
export type Snapshot = z.infer<typeof Snapshot>;

export const SnapshotPage = z
  .strictObject({ items: z.array(Snapshot), next_cursor: z.string().nullable() })
  .meta({ id: 'SnapshotPage' });

/** First line of a snapshot's file, as JSON; what follows is the backend's own. */
export const SnapshotFileHeader = z.strictObject({
  format: z.literal('sandboxer-snapshot'),
  version: z.literal(1),
  extension: z.string().min(1).max(128),
  kind: SnapshotKind,
  profile: z.string().min(1).max(128),
  profile_version: z.string().max(64),
  sandbox_id: SandboxId,
  generation: z.number().int().min(0),
  name: z.string().max(128).nullable(),
  labels: Labels,
  digest: z.string().max(256),
  created_at: z.string().max(64),
});
export type SnapshotFileHeader = z.infer<typeof SnapshotFileHeader>;

export const RenameSnapshotRequest = z
  .strictObject({ name: z.string().max(128).nullable() })
  .meta({ id: 'RenameSnapshotRequest' });

/** A new sandbox from a snapshot: the snapshot's own recipe, with what may differ. */
export const RestoreRequest = z
  .strictObject({ id: SandboxId.optional(), ttl: DurationSeconds.optional(), labels: Labels.optional() })
  .meta({ id: 'RestoreRequest' });
export type RestoreRequest = z.infer<typeof RestoreRequest>;
