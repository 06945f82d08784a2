import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { uploadRef } from '../../client/resources/uploads.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import { UsageError } from '../failures/usage-error.ts';
import type { Invocation } from '../invocation/invocation.ts';
import type { PackFlags } from './stage-path.ts';
import { stagePath, uploading } from './stage-path.ts';

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

/** What the sandbox will let be done with its workspace, as far as the request and its profile tell. */
async function accessOf(
  client: SandboxerClient,
  { workspace, profile }: CreateSandboxInput,
  signal?: AbortSignal,
): Promise<string> {
  if (workspace?.access !== undefined) return workspace.access;
  // What is wrong with the profile is for the create to say.
  const found =
    profile === undefined ? null : await client.profiles.get(profile, { signal }).catch(() => null);
  const { access } = (found?.profile.workspace ?? {}) as { access?: string };
  return access ?? 'rw';
}

interface WorkdirOptions {
  readonly flags: WorkdirFlags;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A workspace that nobody inside may write is not filled from inside: the directory then goes along with the request. `null`
 * when it is uploaded later, by `uploadWorkdir`.
 */
export async function requestWithWorkdir(
  invocation: Invocation,
  client: SandboxerClient,
  request: CreateSandboxInput,
  { flags, signal }: WorkdirOptions,
): Promise<CreateSandboxInput | null> {
  if (flags.workdir === undefined || (await accessOf(client, request, signal)) === 'rw') return null;
  if (request.workspace?.source !== undefined) {
    throw new UsageError(
      'A workspace that cannot be written has one source, and this one would have two.',
      'Leave out --workdir, or --mirror and the source.',
    );
  }
  const directory = await requireDirectory(flags.workdir);
  const source = uploadRef(await stagePath(invocation, client, directory, { flags, signal }));
  return { ...request, workspace: { ...request.workspace, source } };
}

/** A directory of this machine into the sandbox, without what its ignore files name. */
export async function uploadWorkdir(
  invocation: Invocation,
  client: SandboxerClient,
  sandboxId: string,
  { flags, signal }: WorkdirOptions,
): Promise<void> {
  const directory = await requireDirectory(flags.workdir ?? '.');
  await uploading(invocation, directory, flags, (options) =>
    client.files.uploadDirectory(sandboxId, directory, WORKDIR_INSIDE, { signal, ...options }),
  );
}
