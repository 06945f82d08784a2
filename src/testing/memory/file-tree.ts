import { posix } from 'node:path';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { FileEntry } from '../../contract/sandboxes/files.ts';

interface FileNode {
  readonly kind: 'file';
  readonly content: Buffer;
  readonly mode: number;
  readonly modifiedAt: number;
}

interface DirectoryNode {
  readonly kind: 'directory';
  readonly children: Map<string, TreeNode>;
  readonly mode: number;
  readonly modifiedAt: number;
}

type TreeNode = FileNode | DirectoryNode;

function notFound(path: string): SandboxerError {
  return new SandboxerError('SBX_PATH_NOT_FOUND', `There is no ${path}`);
}

export function refusedPath(path: string, why: string): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', `${path}: ${why}`);
}

function directory(mode = 0o755): DirectoryNode {
  return { kind: 'directory', children: new Map(), mode, modifiedAt: Date.now() };
}

function copyOf(node: TreeNode): TreeNode {
  if (node.kind === 'file') return node;
  return { ...node, children: new Map([...node.children].map(([name, child]) => [name, copyOf(child)])) };
}

/** Files and directories in memory. There are no links, and `..` stops at the top. */
export class FileTree {
  #root: DirectoryNode = directory();

  copy(): FileTree {
    const tree = new FileTree();
    tree.#root = copyOf(this.#root) as DirectoryNode;
    return tree;
  }

  stat(path: string): FileEntry {
    return this.#entry(posix.resolve('/', path), this.#get(path));
  }

  list(path: string): FileEntry[] {
    const node = this.#get(path);
    if (node.kind !== 'directory') throw refusedPath(path, 'it is not a directory');
    const base = posix.resolve('/', path);
    return [...node.children]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, child]) => this.#entry(posix.join(base, name), child));
  }

  read(path: string): Buffer {
    const node = this.#get(path);
    if (node.kind !== 'file') throw refusedPath(path, 'it is not a file');
    return node.content;
  }

  write(path: string, content: Buffer, mode: number | null, exclusive: boolean): FileEntry {
    const { parent, name } = this.#parent(path, true);
    const existing = parent.children.get(name);
    if (existing?.kind === 'directory') throw refusedPath(path, 'it is a directory');
    if (existing !== undefined && exclusive) throw refusedPath(path, 'it exists');
    const kept = existing?.mode ?? 0o644;
    parent.children.set(name, { kind: 'file', content, mode: mode ?? kept, modifiedAt: Date.now() });
    return this.stat(path);
  }

  mkdir(path: string, parents: boolean, mode: number): void {
    if (posix.resolve('/', path) === '/' && parents) return;
    const { parent, name } = this.#parent(path, parents);
    const existing = parent.children.get(name);
    if (existing?.kind === 'directory' && parents) return;
    if (existing !== undefined) throw refusedPath(path, 'it exists');
    parent.children.set(name, directory(mode));
  }

  move(from: string, to: string, overwrite: boolean): void {
    const node = this.#get(from);
    const source = this.#parent(from, false);
    const [fromPath, toPath] = [posix.resolve('/', from), posix.resolve('/', to)];
    if (toPath.startsWith(`${fromPath}/`)) throw refusedPath(to, 'it is inside what is moved');
    const target = this.#parent(to, true);
    const existing = target.parent.children.get(target.name);
    if (existing !== undefined && !overwrite) throw refusedPath(to, 'it exists');
    if (existing !== undefined && existing.kind !== node.kind) throw refusedPath(to, 'it is of another kind');
    if (existing?.kind === 'directory' && existing.children.size > 0)
      throw refusedPath(to, 'it is not empty');
    source.parent.children.delete(source.name);
    target.parent.children.set(target.name, node);
  }

  remove(path: string, recursive: boolean): void {
    let place: { parent: DirectoryNode; name: string };
    try {
      place = this.#parent(path, false);
    } catch (error) {
      if (error instanceof SandboxerError && error.code === 'SBX_PATH_NOT_FOUND') return;
      throw error;
    }
    const node = place.parent.children.get(place.name);
    if (node?.kind === 'directory' && node.children.size > 0 && !recursive)
      throw refusedPath(path, 'it is not empty');
    place.parent.children.delete(place.name);
  }

  /** Yields every entry at and below `path`, parents first, with names relative to it. */
  *walk(
    path: string,
  ): Generator<{ name: string; kind: 'file' | 'directory'; mode: number; content: Buffer }> {
    const node = this.#get(path);
    if (node.kind === 'file') {
      const { mode, content } = node;
      yield { name: posix.basename(path), kind: 'file', mode, content };
      return;
    }
    const queue: [string, TreeNode][] = [['', node]];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [name, { kind, mode }] = next;
      const content = next[1].kind === 'file' ? next[1].content : Buffer.alloc(0);
      if (name !== '') yield { name, kind, mode, content };
      if (next[1].kind === 'directory') {
        for (const [child, inner] of next[1].children) queue.push([posix.join(name, child), inner]);
      }
    }
  }

  #get(path: string): TreeNode {
    let node: TreeNode = this.#root;
    for (const part of posix.resolve('/', path).split('/').filter(Boolean)) {
      if (node.kind !== 'directory') throw refusedPath(path, 'a part of it is not a directory');
      const child: TreeNode | undefined = node.children.get(part);
      if (child === undefined) throw notFound(path);
      node = child;
    }
    return node;
  }

  #parent(path: string, make: boolean): { parent: DirectoryNode; name: string } {
    const parts = posix.resolve('/', path).split('/').filter(Boolean);
    const name = parts.pop();
    if (name === undefined) throw refusedPath(path, 'it is the top');
    let node = this.#root;
    for (const part of parts) {
      let child = node.children.get(part);
      if (child === undefined) {
        if (!make) throw notFound(path);
        child = directory();
        node.children.set(part, child);
      }
      if (child.kind !== 'directory') throw refusedPath(path, 'a part of it is not a directory');
      node = child;
    }
    return { parent: node, name };
  }

  #entry(path: string, node: TreeNode): FileEntry {
    return {
      name: posix.basename(path),
      path,
      kind: node.kind,
      size: node.kind === 'file' ? node.content.length : 0,
      mode: node.mode,
      modified_at: new Date(node.modifiedAt).toISOString(),
      link_target: null,
    };
  }
}
