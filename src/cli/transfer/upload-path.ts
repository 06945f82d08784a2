import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { Files } from '../../client/resources/files.ts';
import { SandboxerApiError } from '../../client/transport/api-error.ts';
import { UsageError } from '../failures/usage-error.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { byteText } from '../output/amounts.ts';
import type { Progress } from '../output/progress.ts';
import type { Transferred } from './transferred.ts';

async function isDirectoryInside(files: Files, id: string, path: string): Promise<boolean> {
  try {
    const found = await files.stat(id, path);
    if (found.kind !== 'symlink') return found.kind === 'directory';
    // The description is of the link itself; its target is a directory if it can be listed.
    await files.list(id, path, { limit: 1 });
    return true;
  } catch (error) {
    if (error instanceof SandboxerApiError && error.status < 500 && error.code.startsWith('SBX_PATH'))
      return false;
    throw error;
  }
}

function joined(directory: string, name: string): string {
  return directory.endsWith('/') ? `${directory}${name}` : `${directory}/${name}`;
}

async function* counted(source: AsyncIterable<Buffer>, progress: Progress, label: string) {
  let bytes = 0;
  for await (const part of source) {
    bytes += part.length;
    progress.update(`${label}: ${byteText(bytes)}`);
    yield part;
  }
}

interface FileUpload {
  readonly source: AsyncIterable<Buffer>;
  readonly target: string;
  readonly mode?: number | undefined;
  readonly progress: Progress;
}

async function uploadFile(
  files: Files,
  id: string,
  { source, target, mode, progress }: FileUpload,
): Promise<Transferred> {
  const body = counted(source, progress, `Uploading to ${target}`);
  const entry = await files.write(id, target, body, { mode });
  return { files: 1, path: entry.path };
}

interface DirectoryUpload {
  readonly id: string;
  readonly directory: string;
  readonly target: string;
  readonly progress: Progress;
}

async function uploadDirectory(
  invocation: Invocation,
  files: Files,
  { id, directory, target, progress }: DirectoryUpload,
): Promise<Transferred> {
  let bytes = 0;
  await files.mkdir(id, target, { parents: true });
  const done = await files.uploadDirectory(id, directory, target, {
    ignore: false,
    onEntry: ({ name, size }) => {
      bytes += size;
      progress.update(`Uploading ${byteText(bytes)}: ${name}`);
    },
    onSkipped: (path, reason) => invocation.printer.warn(`left out ${path}: ${reason}`),
  });
  return { files: done.files, path: target };
}

interface UploadedPath {
  readonly from: string;
  readonly id: string;
  readonly to: string;
}

/** Copies a file or a directory of this machine into a sandbox; `-` is the input. */
export async function uploadPath(
  invocation: Invocation,
  files: Files,
  { from, id, to }: UploadedPath,
): Promise<Transferred> {
  const progress = invocation.progress(`Uploading ${from}`);
  if (from === '-') {
    if (to.endsWith('/') || (await isDirectoryInside(files, id, to)))
      throw new UsageError(
        `${to} is a directory, and the input has no name.`,
        `Name the file: sandboxer cp - ${id}:${joined(to, 'name')}`,
      );
    return progress.during(
      uploadFile(files, id, { source: process.stdin as AsyncIterable<Buffer>, target: to, progress }),
    );
  }
  const found = await stat(from).catch(() => null);
  if (found === null) throw new UsageError(`There is no file ${from}.`);
  const into = to.endsWith('/') || (await isDirectoryInside(files, id, to));
  // `dir/.` means its content, as with cp.
  const contentOnly = /(?:^|\/)\.\/?$/.test(from);
  const target = into && !contentOnly ? joined(to, basename(resolve(from))) : to;
  const work = found.isDirectory()
    ? uploadDirectory(invocation, files, { id, directory: from, target, progress })
    : uploadFile(files, id, { source: createReadStream(from), target, mode: found.mode & 0o777, progress });
  return progress.during(work);
}
