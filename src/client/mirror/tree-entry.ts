import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { hostPath } from '../../archive/file-name.ts';
import type { UploadEntry } from '../../contract/assets/upload.ts';
import { findTree } from '../../trees/pack-tree.ts';

/** Compared properties of a file, a directory or a link. */
export interface TreeEntry {
  readonly kind: 'file' | 'directory' | 'symlink';
  /** `sha256:…` of a file, the target of a link, empty for a directory. */
  readonly content: string;
  readonly executable: boolean;
}

export type Tree = Map<string, TreeEntry>;

export function sameEntry(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.kind === other.kind && one.content === other.content && one.executable === other.executable;
}

export function entryOf(
  kind: TreeEntry['kind'],
  mode: number,
  digest: string | null,
  linkTarget: string | null,
): TreeEntry {
  const content = kind === 'file' ? (digest ?? '') : kind === 'symlink' ? (linkTarget ?? '') : '';
  return { kind, content, executable: kind === 'file' && (mode & 0o111) !== 0 };
}

export async function treeOfUpload(entries: AsyncIterable<UploadEntry>): Promise<Tree> {
  const tree: Tree = new Map();
  for await (const { path, kind, mode, digest, link_target } of entries) {
    tree.set(path, entryOf(kind, mode, digest, link_target));
  }
  return tree;
}

export async function digestOfFile(path: string | Buffer): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return `sha256:${hash.digest('hex')}`;
}

/** Returns the whole tree here, also files that would not be uploaded: no file here is overwritten unseen. */
export async function treeOfDirectory(directory: string, wanted: (path: string) => boolean): Promise<Tree> {
  const tree: Tree = new Map();
  for await (const { header, path } of findTree(directory, { ignore: false })) {
    if (!wanted(header.name) && header.kind === 'file') continue;
    const digest = header.kind === 'file' ? await digestOfFile(hostPath(path)) : null;
    tree.set(header.name, entryOf(header.kind, header.mode, digest, header.linkTarget));
  }
  return tree;
}
