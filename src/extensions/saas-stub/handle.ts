import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Json } from '../../contract/values/json.ts';
import { versionedHandle } from '../../core/ports/extension.ts';
import { StubName } from './wire/protocol.ts';

const HandleData = z.strictObject({ name: StubName, owner: z.string().min(1).max(200) });
const SnapshotRef = z.strictObject({ snapshot_id: StubName });

export const handles = versionedHandle(HandleData, 1);

export function snapshotRefOf(snapshotId: string): Json {
  return { snapshot_id: snapshotId };
}

export function readSnapshotRef(ref: Json): string {
  const parsed = SnapshotRef.safeParse(ref);
  if (parsed.success) return parsed.data.snapshot_id;
  throw new SandboxerError('SBX_EXTENSION_FAILED', 'The snapshot reference cannot be read.', {
    creation: 'not_created',
  });
}
