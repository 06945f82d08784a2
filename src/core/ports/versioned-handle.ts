import type { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Json } from '../../contract/values/json.ts';

/** The data with which another process finds the sandbox again. Opaque to all code but the extension that wrote it. */
export interface Handle {
  readonly version: number;
  readonly data: Json;
}

/** Returns the data of version `from` + 1, made from the data of version `from`. */
export type HandleUpgrade = (data: Json, from: number) => Json;

export interface VersionedHandle<Input, Output> {
  readonly version: number;
  /** Returns a handle of the current version. */
  write(data: Input): Handle;
  /** Upgrades an older handle step by step; refuses a newer handle, and data that the schema refuses. */
  read(handle: Handle): Output;
}

const NEWER =
  'Run the version of sand-boxer that made the sandbox, or a newer one; it can also destroy the sandbox.';
const UNREADABLE = 'Destroy the sandbox: its resource is found by its stamp, without the handle.';

function refuse(detail: string, remedy: string): never {
  throw new SandboxerError('SBX_EXTENSION_FAILED', detail, { field: 'handle', remedy, retryable: false });
}

/**
 * The handles of one extension: `version` is written, every version from 1 on is read. `upgrade` is called once for each
 * version between that of the handle and the current one; an extension at version 1 needs none.
 */
export function versionedHandle<Schema extends z.ZodType>(
  schema: Schema,
  version: number,
  upgrade: HandleUpgrade = (data) => data,
): VersionedHandle<z.input<Schema>, z.output<Schema>> {
  return {
    version,
    write: (data) => ({ version, data: data as Json }),
    read(handle) {
      if (!Number.isInteger(handle.version) || handle.version < 1)
        refuse(`A handle of version ${handle.version} was never written.`, UNREADABLE);
      if (handle.version > version)
        refuse(`The handle is of version ${handle.version}; versions up to ${version} are read here.`, NEWER);
      let { data } = handle;
      for (let from = handle.version; from < version; from++) data = upgrade(data, from);
      const parsed = schema.safeParse(data);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      const field = issue?.path.join('.') || 'data';
      return refuse(
        `The handle of version ${handle.version} cannot be read: ${field}: ${issue?.message}`,
        UNREADABLE,
      );
    },
  };
}
