import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Json } from '../../../contract/values/json.ts';

const SnapshotRef = z.strictObject({
  snapshot_id: z.string().min(1).max(200),
  owner: z.string().min(1).max(200),
});
export type SnapshotRef = z.infer<typeof SnapshotRef>;

export function readSnapshotRef(ref: Json): SnapshotRef {
  const parsed = SnapshotRef.safeParse(ref);
  if (parsed.success) return parsed.data;
  throw new SandboxerError('SBX_EXTENSION_FAILED', 'The snapshot reference cannot be read.', {
    creation: 'not_created',
  });
}
