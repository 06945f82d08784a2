import type { Readable } from 'node:stream';
import { UsageError } from '../failures/usage-error.ts';

function unreadable(path: string, cause: NodeJS.ErrnoException): UsageError {
  if (cause.code === 'ENOENT')
    return new UsageError(`There is no file ${path}.`, 'Name a file of this machine.');
  return new UsageError(
    `The file ${path} cannot be read: ${cause.message}`,
    'Name a file that you may read.',
  );
}

/** Reads the text of a file of this machine; `-` is the input. */
export async function readInputFile(path: string): Promise<string> {
  const { text } = await import('node:stream/consumers');
  return text(await openInputFile(path));
}

/** Opens a file of this machine; `-` is the input. */
export async function openInputFile(path: string): Promise<Readable> {
  if (path === '-') return process.stdin;
  const { open } = await import('node:fs/promises');
  try {
    const file = await open(path);
    if ((await file.stat()).isDirectory())
      throw Object.assign(new Error('it is a directory'), { code: 'EISDIR' });
    return file.createReadStream();
  } catch (error) {
    throw unreadable(path, error as NodeJS.ErrnoException);
  }
}
