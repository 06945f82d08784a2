import type { TarEntry } from '../../../archive/tar/format.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { readTreeArchive, writeTreeArchive } from '../../../core/assets/tree-archive.ts';
import type { InputTrees } from '../../../core/ports/inputs.ts';
import type { TarTree } from '../compose/tree/tar-tree.ts';
import { directoryOf } from '../compose/tree/tree-view.ts';

type Names = readonly InputTrees['list'][number]['name'][];

/** Returns a generated file as an entry of an archive. */
export function textEntry(name: string, content: string | Uint8Array, mode = 0o644): TarEntry {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const body = (async function* () {
    yield bytes;
  })();
  return { name, kind: 'file', mode, size: bytes.length, modifiedAtMs: 0, linkTarget: null, body };
}

/** Returns whether an entry lies behind a link of the archive itself: such an entry could lead an unpacker out. */
function behindLink(tree: TarTree, name: string): boolean {
  for (let path = directoryOf(name); path !== ''; path = directoryOf(path)) {
    if (tree.kind(path) === 'symlink') return true;
  }
  return false;
}

interface ShippedTree {
  readonly tree: TarTree;
  readonly extra: ReadonlyMap<string, string>;
  /** The trees of the request, the lowest first. */
  readonly inputs: { readonly trees: Names };
}

/**
 * Merges the trees of a request into one archive: of duplicate entries, the later. Links come last, so that a `tar` that follows
 * links cannot write through them.
 */
export async function* shipTree(
  inputs: InputTrees,
  { tree, extra, inputs: { trees: names } }: ShippedTree,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  async function* entries(): AsyncGenerator<TarEntry> {
    const links: TarEntry[] = [];
    for (const [layer, name] of names.entries()) {
      let serial = 0;
      for await (const entry of readTreeArchive(await inputs.open(name, { signal }))) {
        signal.throwIfAborted();
        serial += 1;
        if (entry.name === '.' || !tree.isOf(entry.name, layer, serial)) continue;
        if (behindLink(tree, entry.name)) {
          throw new SandboxerError('SBX_PATH_REFUSED', `${entry.name} lies behind a link of the tree.`, {
            creation: 'maybe_created',
          });
        }
        if (entry.kind === 'symlink') links.push(entry);
        else yield entry;
      }
    }
    for (const [path, text] of extra) yield textEntry(path, text);
    yield* links;
  }
  yield* writeTreeArchive(entries());
}

export async function* archiveOf(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array> {
  yield* writeTreeArchive(
    (async function* () {
      yield* entries;
    })(),
  );
}
