import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { SandboxerClient } from '../client/sandboxer-client.ts';
import type { Invocation } from './invocation.ts';
import type { PackFlags } from './transfer/stage-path.ts';
import { uploading } from './transfer/stage-path.ts';
import { UsageError } from './usage-error.ts';

export interface WorkdirFlags extends PackFlags {
  readonly workdir?: string;
}

/** Where a directory goes when nobody says: the working directory of the sandbox's default user. */
const WORKDIR_INSIDE = '.';

export async function requireDirectory(path: string): Promise<string> {
  const stats = await stat(path).catch(() => null);
  if (!stats?.isDirectory())
    throw new UsageError(`There is no directory ${path}.`, 'Give --workdir a directory of this machine.');
  return resolve(path);
}

/** A directory of this machine into the sandbox, without what its ignore files name. */
export async function uploadWorkdir(
  invocation: Invocation,
  client: SandboxerClient,
  sandboxId: string,
  flags: WorkdirFlags,
  signal?: AbortSignal,
): Promise<void> {
  const directory = await requireDirectory(flags.workdir ?? '.');
  await uploading(invocation, directory, flags, (options) =>
    client.files.uploadDirectory(sandboxId, directory, WORKDIR_INSIDE, { signal, ...options }),
  );
}
