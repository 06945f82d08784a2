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

/** Default target of a directory: the working directory of the sandbox's default user. */
const WORKDIR_INSIDE = '.';

export async function requireDirectory(path: string): Promise<string> {
  const stats = await stat(path).catch(() => null);
  if (!stats?.isDirectory())
    throw new UsageError(`There is no directory ${path}.`, 'Give --workdir a directory of this machine.');
  return resolve(path);
}

/** Returns the access to the sandbox's workspace, as far as the request and its profile determine it. */
async function accessOf(
  client: SandboxerClient,
  { workspace, profile }: CreateSandboxInput,
  signal?: AbortSignal,
): Promise<string> {
  if (workspace?.access !== undefined) return workspace.access;
  // The create reports errors of the profile.
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
 * Adds the directory to the request where the workspace is read-only and cannot be filled from inside. Returns `null` when
 * `uploadWorkdir` uploads the directory later.
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

/** Copies a directory of this machine into the sandbox, without paths in its ignore files. */
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
