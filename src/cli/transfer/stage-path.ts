import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Upload } from '../../contract/upload.ts';
import type { Invocation } from '../invocation.ts';
import { byteText } from '../output/amounts.ts';
import { UsageError } from '../usage-error.ts';

export interface PackFlags {
  readonly withGit?: boolean;
  readonly withSecrets?: boolean;
}

const SHOWN = 5;

/** What was left out, as far as anybody reads it. */
export function tellSkipped(invocation: Invocation, skipped: readonly (readonly [string, string])[]): void {
  const { printer } = invocation;
  for (const [path, reason] of skipped.slice(0, SHOWN)) printer.warn(`left out ${path}: ${reason}`);
  const more = skipped.length - SHOWN;
  if (more > 0) printer.warn(`left out ${more} more`);
  if (skipped.some(([, reason]) => reason.includes('secrets'))) {
    printer.note('Use --with-secrets, or a line such as !.env in .sandboxerignore, to upload them.');
  }
}

/** Uploads a directory or file of this machine for a sandbox that is yet to be made. */
export async function stagePath(
  invocation: Invocation,
  client: SandboxerClient,
  path: string,
  flags: PackFlags,
  signal?: AbortSignal,
): Promise<Upload> {
  const place = resolve(path);
  const found = await stat(place).catch(() => null);
  if (!found?.isDirectory() && !found?.isFile()) {
    throw new UsageError(
      `There is no file or directory ${path} on this machine.`,
      'Name one, or a repository as https://host/path.git#branch.',
    );
  }
  // A stream cannot be sent twice: a server that has to be started first is started before.
  await client.version({ signal });
  const progress = invocation.progress(`Uploading ${path}`);
  const skipped: [string, string][] = [];
  let files = 0;
  let bytes = 0;
  const upload = client.uploads.path(place, {
    signal,
    git: flags.withGit,
    secrets: flags.withSecrets,
    onEntry: ({ kind, size }) => {
      if (kind === 'file') files += 1;
      bytes += size;
      progress.update(`Uploading ${path}: ${files} files, ${byteText(bytes)}`);
    },
    onSkipped: (name, reason) => skipped.push([name, reason]),
  });
  const done = await progress.during(upload);
  tellSkipped(invocation, skipped);
  return done;
}
