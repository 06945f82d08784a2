import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import path from 'node:path';
import { SandboxerError } from '../contract/errors/errors.ts';
import type { SecretProvider } from '../core/ports/secrets.ts';

const LARGEST_SECRET_BYTES = 64 * 1024;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Secrets from the files of one directory, one file per key. Links are followed within the directory only (that is
 * how Kubernetes mounts them). One newline at the end is not part of the secret.
 */
export class FileSecretProvider implements SecretProvider {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async resolve(key: string, signal: AbortSignal): Promise<string> {
    if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/.test(key)) {
      throw unresolved('The key is not a plain file name.', 'Name a file of the directory, without any "/".');
    }
    try {
      const root = await realpath(this.#directory);
      const file = await realpath(path.join(root, key));
      signal.throwIfAborted();
      if (!file.startsWith(root + path.sep)) {
        throw unresolved(
          `The file ${key} leads out of the directory.`,
          'Put the file itself into the directory.',
        );
      }
      return await readSecret(file, key);
    } catch (error) {
      if (error instanceof SandboxerError || signal.aborted) throw error;
      const { code = 'unreadable' } = error as NodeJS.ErrnoException;
      throw unresolved(
        `The file ${key} cannot be read: ${code}.`,
        'Make it readable to the server, as UTF-8 text.',
      );
    }
  }
}

async function readSecret(file: string, key: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile())
      throw unresolved(`${key} is not a regular file.`, 'Put the secret into a regular file.');
    if ((stat.mode & WRITABLE_BY_OTHERS) !== 0) {
      throw unresolved(`Others than its owner may write the file ${key}.`, `Run: chmod go-w ${key}`);
    }
    if (stat.size > LARGEST_SECRET_BYTES) {
      throw unresolved(`The file ${key} is larger than 64 KiB.`, 'Store the secret itself, not a bundle.');
    }
    const buffer = Buffer.alloc(LARGEST_SECRET_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      buffer.subarray(0, bytesRead),
    );
    const value = text.replace(/\r?\n$/, '');
    if (value === '') throw unresolved(`The file ${key} is empty.`, 'Write the secret into it.');
    return value;
  } finally {
    await handle.close();
  }
}

function unresolved(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_SECRET_UNRESOLVED', detail, { remedy });
}
