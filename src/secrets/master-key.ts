import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { SandboxerError } from '../contract/errors/errors.ts';

export interface MasterKeySource {
  /** A file that only its owner can read. It is made when it is not there. */
  readonly file: string;
  /** Whether a key may be made. Not when something is sealed already: then the key is lost, and a new one opens nothing. */
  readonly mayCreate?: boolean;
  /** The key itself, from the environment. */
  readonly value?: string | undefined;
  /** A program and its arguments that prints the key, such as a password manager's. */
  readonly command?: readonly string[] | undefined;
}

const KEY_BYTES = 32;
const COMMAND_MS = 10_000;
const READABLE_BY_OTHERS = 0o077;

/** 32 bytes, as 64 hexadecimal digits or as base64. Environment before command before file. */
export function loadMasterKey({ file, value, command, mayCreate = true }: MasterKeySource): Buffer {
  if (value) return parseKey(value, 'SANDBOXER_MASTER_KEY');
  if (command?.[0]) return parseKey(output(command), `the command ${command[0]}`);
  const found = readPrivate(file);
  if (found !== null) return parseKey(found, file);
  if (!mayCreate)
    throw unusable(
      `The master key ${file} is missing, and secrets are sealed under it.`,
      'Restore it from its copy. Without it, delete the provider keys and webhooks and set them again.',
    );
  return parseKey(createKeyFile(file), file);
}

function parseKey(text: string, from: string): Buffer {
  const trimmed = text.trim();
  const key = /^[0-9a-f]{64}$/i.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64');
  if (key.length === KEY_BYTES) return key;
  throw unusable(`The master key from ${from} is not 32 bytes in base64 or hexadecimal.`, 'Correct it.');
}

function output([program = '', ...args]: readonly string[]): string {
  try {
    return execFileSync(program, args, {
      encoding: 'utf8',
      timeout: COMMAND_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch (error) {
    const { code, status } = error as { code?: string; status?: number };
    const detail = `The command ${program} gave no master key (${code ?? `exit ${status}`}).`;
    throw unusable(detail, 'Run it by hand as the user of the server.');
  }
}

function readPrivate(file: string): string | null {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw unusable(
      `The master key ${file} cannot be read: ${(error as Error).message}`,
      'Make it readable to the server.',
    );
  }
  try {
    if ((fstatSync(fd).mode & READABLE_BY_OTHERS) !== 0) {
      throw unusable(`Others than its owner may read the master key ${file}.`, `Run: chmod 600 ${file}`);
    }
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** Creates the key file whole or not at all. A process that finds the file created meanwhile uses that one. */
function createKeyFile(file: string): string {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(fd, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  try {
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return readPrivate(file) ?? '';
}

function unusable(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_MASTER_KEY', detail, { retryable: false, remedy });
}
