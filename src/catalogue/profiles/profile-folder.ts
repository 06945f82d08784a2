import { constants } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import type { RawDocument } from '../../core/recipe/profile-merge.ts';
import type { ProfileYaml } from './profile-yaml.ts';
import { LARGEST_DOCUMENT_BYTES, readProfileYaml } from './profile-yaml.ts';

export interface ProfileFolder {
  readonly path: string;
  /** The priority of its overrides, unless they declare their own. Folders with a higher priority are read later. */
  readonly priority: number;
  /** Stands for the folder in the names of its files. */
  readonly label: string;
  /** A folder that need not exist. */
  readonly optional?: boolean;
}

export interface ProfileFile {
  /** `label/name/1.0.0.yaml` */
  readonly file: string;
  readonly relativePath: string;
  readonly folderPriority: number;
  readonly document: RawDocument;
  readonly locate: ProfileYaml['locate'];
}

export interface ProfileFiles {
  readonly files: readonly ProfileFile[];
  readonly issues: readonly ProfileIssue[];
}

const DEEPEST = 4;
const MOST_FILES = 5000;

/** Reads every YAML document in a folder. A document that cannot be read becomes an issue; the others are read all the same. */
export async function readProfileFolder(folder: ProfileFolder): Promise<ProfileFiles> {
  let root: string;
  let names: string[];
  try {
    root = await realpath(folder.path);
    names = (await listDocuments(root, '', DEEPEST)).sort();
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isMissing && folder.optional) return { files: [], issues: [] };
    const problem = `The folder cannot be read: ${reasonOf(error)}.`;
    return {
      files: [],
      issues: [issueAt(folder.label, problem, 'Create it, or correct the configured path.')],
    };
  }
  const files: ProfileFile[] = [];
  const issues: ProfileIssue[] = [];
  if (names.length > MOST_FILES) {
    const problem = `The folder holds more than ${MOST_FILES} documents; the rest is not read.`;
    issues.push(issueAt(folder.label, problem, 'Remove what is not used.'));
  }
  for (const name of names.slice(0, MOST_FILES)) {
    const read = await readDocument(folder, root, name);
    if (Array.isArray(read)) issues.push(...read);
    else files.push(read);
  }
  return { files, issues };
}

async function listDocuments(root: string, below: string, depth: number): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(path.join(root, below), { withFileTypes: true })) {
    const name = path.posix.join(below, entry.name);
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory() && depth > 1) found.push(...(await listDocuments(root, name, depth - 1)));
    else if (!entry.isDirectory() && /\.ya?ml$/.test(entry.name)) found.push(name);
  }
  return found;
}

async function readDocument(
  folder: ProfileFolder,
  root: string,
  relativePath: string,
): Promise<ProfileFile | ProfileIssue[]> {
  const file = `${folder.label}/${relativePath}`;
  let text: string;
  try {
    const target = await realpath(path.join(root, relativePath));
    if (!target.startsWith(root + path.sep)) {
      return [issueAt(file, 'The link leads out of the folder.', 'Put the file itself into the folder.')];
    }
    text = await readText(target);
  } catch (error) {
    return [
      issueAt(file, `The file cannot be read: ${reasonOf(error)}.`, 'Make it a readable UTF-8 text file.'),
    ];
  }
  const yaml = readProfileYaml(text, file);
  if (Array.isArray(yaml)) return yaml;
  const { value, locate } = yaml;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [issueAt(file, 'A profile is a map of fields.', 'Start it with "id: profile.<name>".')];
  }
  return { file, relativePath, folderPriority: folder.priority, document: value as RawDocument, locate };
}

/** Reads one byte more than allowed at most, whatever the file grows to meanwhile. */
async function readText(target: string): Promise<string> {
  const handle = await open(target, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw new Error('not a regular file');
    const buffer = Buffer.alloc(LARGEST_DOCUMENT_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.length) break;
    }
    if (length > LARGEST_DOCUMENT_BYTES) throw new Error('larger than 256 KiB');
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, length));
  } finally {
    await handle.close();
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

function issueAt(file: string, problem: string, remedy: string): ProfileIssue {
  return { file, line: null, column: null, field: '', problem, remedy };
}
