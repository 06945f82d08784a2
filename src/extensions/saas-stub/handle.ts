import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Handle } from '../../core/ports/extension.ts';
import { StubName } from './wire/protocol.ts';

export const HANDLE_VERSION = 1;

const HandleData = z.strictObject({ name: StubName, owner: z.string().min(1).max(200) });
export type HandleData = z.infer<typeof HandleData>;

const SnapshotRef = z.strictObject({ snapshot_id: StubName });

export function handleOf(name: string, owner: string): Handle {
  return { version: HANDLE_VERSION, data: { name, owner } };
}

export function readHandle(handle: Handle): HandleData {
  const parsed = HandleData.safeParse(handle.data);
  if (handle.version === HANDLE_VERSION && parsed.success) return parsed.data;
  throw new SandboxerError('SBX_EXTENSION_FAILED', `A handle of version ${handle.version} cannot be read.`);
}

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
