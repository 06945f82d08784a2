import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Handle, Stamp } from '../../core/ports/extension.ts';
import type { Named } from './containers/labels.ts';
import { containerName, stampIn } from './containers/labels.ts';
import { BACKEND } from './engine/engine-error.ts';

export const HANDLE_VERSION = 1;

const HandleData = z.strictObject({
  container: z.string().min(1).max(1024),
  /** Of the recipe: a container that was started ahead has none of its own. */
  variables: z.record(z.string(), z.string()).optional(),
});
const SnapshotRef = z.strictObject({ image: z.string().regex(/^[a-z0-9-]+:[\w.-]{1,128}$/) });

export function handleOf(stamp: Stamp, variables: Readonly<Record<string, string>> = {}): Handle {
  const container = containerName(stamp);
  const bare = Object.keys(variables).length === 0;
  return { version: HANDLE_VERSION, data: bare ? { container } : { container, variables: { ...variables } } };
}

/** The container's name; only one that we could have given. */
export function readHandle(handle: Handle): Named {
  const { container: name = '', variables = {} } = HandleData.safeParse(handle.data).data ?? {};
  const stamp = stampIn(name);
  if (handle.version === HANDLE_VERSION && stamp !== null) return { name, stamp, variables };
  throw new SandboxerError('SBX_EXTENSION_FAILED', `A handle of version ${handle.version} cannot be read.`, {
    backend: BACKEND,
  });
}

export function readSnapshotRef(ref: Json): string {
  const parsed = SnapshotRef.safeParse(ref);
  if (parsed.success) return parsed.data.image;
  throw new SandboxerError('SBX_EXTENSION_FAILED', 'The snapshot reference cannot be read.', {
    backend: BACKEND,
    creation: 'not_created',
  });
}
