import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Upload } from '../../contract/assets/upload.ts';
import type { PackOptions } from '../../trees/pack-tree.ts';
import { UsageError } from '../failures/usage-error.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { byteText } from '../output/amounts.ts';

export interface PackFlags {
  readonly withGit?: boolean;
  readonly withSecrets?: boolean;
  readonly withSecret?: readonly string[];
}

/** Likely secrets that were asked for. */
export function askedSecrets({ withSecrets, withSecret }: PackFlags): boolean | readonly string[] {
  return withSecrets === true || (withSecret ?? false);
}

const SHOWN = 5;

/** Shows the progress of an upload, and in the end the paths left out. */
export async function uploading<T>(
  invocation: Invocation,
  what: string,
  flags: PackFlags,
  upload: (options: PackOptions) => Promise<T>,
): Promise<T> {
  const progress = invocation.progress(`Uploading ${what}`);
  const skipped: [string, string][] = [];
  let files = 0;
  let bytes = 0;
  const work = progress.during(
    upload({
      git: flags.withGit,
      secrets: askedSecrets(flags),
      onEntry: ({ kind, size }) => {
        if (kind === 'file') files += 1;
        bytes += size;
        progress.update(`Uploading ${what}: ${files} files, ${byteText(bytes)}`);
      },
      onSkipped: (name, reason) => skipped.push([name, reason]),
    }),
  );
  return work.finally(() => tellSkipped(invocation, skipped));
}

/** Prints the paths left out, up to a readable number. */
function tellSkipped(invocation: Invocation, skipped: readonly (readonly [string, string])[]): void {
  const { printer } = invocation;
  for (const [path, reason] of skipped.slice(0, SHOWN)) printer.warn(`left out ${path}: ${reason}`);
  const more = skipped.length - SHOWN;
  if (more > 0) printer.warn(`left out ${more} more`);
  if (skipped.some(([, reason]) => reason.includes('secrets'))) {
    printer.note('Use --with-secret PATTERN, or --with-secrets for all, to upload them.');
  }
}

interface StagePathOptions {
  readonly flags: PackFlags;
  readonly signal?: AbortSignal | undefined;
}

/** Uploads a directory or file of this machine for a sandbox that is yet to be made. */
export async function stagePath(
  invocation: Invocation,
  client: SandboxerClient,
  path: string,
  { flags, signal }: StagePathOptions,
): Promise<Upload> {
  const place = resolve(path);
  const found = await stat(place).catch(() => null);
  if (!found?.isDirectory() && !found?.isFile()) {
    throw new UsageError(
      `There is no file or directory ${path} on this machine.`,
      'Name one, or a repository as https://host/path.git#branch.',
    );
  }
  return uploading(invocation, path, flags, (options) => client.uploads.path(place, { signal, ...options }));
}
