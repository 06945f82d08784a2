import { createWriteStream } from 'node:fs';
import { chmod, rename, rm, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Files } from '../../client/resources/files.ts';
import { wholeAnswer } from '../../client/transport/whole-answer.ts';
import type { FileEntry } from '../../contract/sandboxes/files.ts';
import { UsageError } from '../failures/usage-error.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { byteText } from '../output/amounts.ts';
import type { Progress } from '../output/progress.ts';
import { orBrokenOff } from './broken-off.ts';
import type { Transferred } from './transferred.ts';

/** Streams the bytes of one file; `onBytes` gets their number. */
async function* contentOf(
  answer: IncomingMessage,
  from: string,
  { size }: FileEntry,
  onBytes?: (bytes: number) => void,
) {
  let bytes = 0;
  const reached = () => `after ${byteText(bytes)} of ${byteText(size)}`;
  for await (const part of wholeAnswer(answer, `The copy of ${from}`, reached)) {
    bytes += part.length;
    onBytes?.(bytes);
    yield part;
  }
}

/** Returns the last part of a path inside, which must not lead out of the target directory. */
function nameOf(path: string): string {
  const name =
    path
      .split('/')
      .filter((part) => part !== '' && part !== '.')
      .at(-1) ?? '';
  if (name === '' || name === '..')
    throw new UsageError(`The path ${path} has no name.`, 'Name the target, too.');
  return name;
}

interface FileDownload {
  readonly entry: FileEntry;
  readonly from: string;
  readonly target: string;
  readonly progress: Progress;
}

/** Writes the file; it appears under its name when it is complete. */
async function downloadFile(
  files: Files,
  id: string,
  { entry, from, target, progress }: FileDownload,
): Promise<Transferred> {
  const response = await files.download(id, from);
  const draft = `${target}.${process.pid}.part`;
  try {
    await pipeline(
      contentOf(response, from, entry, (bytes) =>
        progress.update(`Downloading ${from}: ${byteText(bytes)} of ${byteText(entry.size)}`),
      ),
      createWriteStream(draft, { flags: 'wx' }),
    );
    await chmod(draft, entry.mode & 0o777);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return { files: 1, path: target };
}

interface DirectoryDownload {
  readonly id: string;
  readonly from: string;
  readonly target: string;
  readonly progress: Progress;
}

async function downloadDirectory(
  invocation: Invocation,
  files: Files,
  { id, from, target, progress }: DirectoryDownload,
): Promise<Transferred> {
  let bytes = 0;
  const done = await files.downloadDirectory(id, from, target, {
    onEntry: ({ name, size }) => {
      bytes += size;
      progress.update(`Downloading ${byteText(bytes)}: ${name}`);
    },
    onSkipped: (path, reason) => invocation.printer.warn(`left out ${path}: ${reason}`),
  });
  return { files: done.files, path: target };
}

async function kindOf(files: Files, id: string, path: string): Promise<FileEntry> {
  const entry = await files.stat(id, path);
  if (entry.kind !== 'symlink') return entry;
  // The target of a link is a directory if it can be listed, and read as a file otherwise.
  const listed = await files.list(id, path, { limit: 1 }).catch(() => null);
  return { ...entry, kind: listed === null ? 'file' : 'directory' };
}

interface DownloadedPath {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Copies a file or a directory of a sandbox to this machine; `-` is the output. */
export async function downloadPath(
  invocation: Invocation,
  files: Files,
  { id, from, to }: DownloadedPath,
): Promise<Transferred> {
  const entry = await kindOf(files, id, from);
  if (to === '-') {
    if (entry.kind === 'directory')
      throw new UsageError(
        `${from} is a directory, and the output takes one file.`,
        `Name a directory of this machine, or write sandboxer exec ${id} -- tar -C ${from} -c . > files.tar`,
      );
    const response = await files.download(id, from);
    const whole = pipeline(contentOf(response, from, entry), process.stdout, { end: false });
    await orBrokenOff(whole, id, 'What came of it was written.');
    return { files: 1, path: to };
  }
  const there = await stat(to).catch(() => null);
  const contentOnly = /(?:^|\/)\.\/?$/.test(from);
  const into = there?.isDirectory() === true && !contentOnly;
  const target = into ? join(to, nameOf(from)) : to;
  const progress = invocation.progress(`Downloading ${from}`);
  const work =
    entry.kind === 'directory'
      ? downloadDirectory(invocation, files, { id, from, target, progress })
      : downloadFile(files, id, { entry, from, target, progress });
  const left =
    entry.kind === 'directory' ? `What was copied is in ${target}.` : 'Nothing of it was kept here.';
  return orBrokenOff(progress.during(work), id, left);
}
