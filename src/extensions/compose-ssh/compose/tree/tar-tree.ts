import { goesUpAgain, judgeLink } from '../../../../archive/link-judge.ts';
import { SandboxerError } from '../../../../contract/errors/errors.ts';
import { readTreeArchive } from '../../../../core/assets/tree-archive.ts';
import type { InputTrees } from '../../../../core/ports/inputs.ts';
import type { TreeView } from './tree-view.ts';

type Names = readonly InputTrees['list'][number]['name'][];

interface Entry {
  readonly kind: 'file' | 'directory' | 'symlink';
  readonly linkTarget: string | null;
  readonly layer: number;
  /** Index of the entry in its archive; -1 for a directory that no entry names. */
  readonly serial: number;
}

const MOST_ENTRIES = 500_000;
const LARGEST_TEXT = 2 * 1_048_576;

/** The trees of a request laid over one another, read from their archives: once for the names, again for each text. */
export class TarTree implements TreeView {
  readonly #inputs: InputTrees;
  readonly #names: Names;
  readonly #extra: ReadonlyMap<string, string>;
  readonly #entries = new Map<string, Entry>();
  readonly #signal: AbortSignal;
  #texts = new Map<string, string>();

  private constructor(
    inputs: InputTrees,
    names: Names,
    extra: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ) {
    this.#inputs = inputs;
    this.#names = names;
    this.#extra = extra;
    this.#signal = signal;
  }

  /** Opens the trees. `extra`: files of the request itself, on top. */
  static async open(
    inputs: InputTrees,
    names: Names,
    extra: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ): Promise<TarTree> {
    const tree = new TarTree(inputs, names, extra, signal);
    await tree.#index();
    return tree;
  }

  kind(path: string): Entry['kind'] | null {
    if (path === '') return 'directory';
    return this.#entries.get(path)?.kind ?? null;
  }

  /** Returns whether this entry is the effective one of its name: the last of the last tree that has one. */
  isOf(path: string, layer: number, serial: number): boolean {
    const entry = this.#entries.get(path);
    return entry?.layer === layer && entry.serial === serial;
  }

  linkTarget(path: string): string | null {
    return this.#entries.get(path)?.linkTarget ?? null;
  }

  async read(path: string): Promise<string | null> {
    const given = this.#extra.get(path) ?? this.#texts.get(path);
    if (given !== undefined) return given;
    const entry = this.#entries.get(path);
    if (entry?.kind !== 'file') return null;
    const name = this.#names[entry.layer];
    if (name === undefined) return null;
    let serial = 0;
    for await (const item of readTreeArchive(await this.#inputs.open(name, { signal: this.#signal }))) {
      serial += 1;
      if (item.name !== path || serial !== entry.serial) continue;
      const text = await collect(item.body, path);
      this.#texts.set(path, text);
      return text;
    }
    return null;
  }

  async #index(): Promise<void> {
    for (const [layer, name] of this.#names.entries()) {
      let serial = 0;
      for await (const item of readTreeArchive(await this.#inputs.open(name, { signal: this.#signal }))) {
        serial += 1;
        if (item.name === '.') continue;
        if (this.#entries.size >= MOST_ENTRIES) throw tooLarge(`more than ${MOST_ENTRIES} files`);
        this.#parents(item.name, layer);
        this.#entries.set(item.name, { kind: item.kind, linkTarget: item.linkTarget, layer, serial });
        // Most stacks need only these files: the archive is then read once.
        if (item.kind === 'file' && /(?:^|\/)(?:(?:docker-)?compose[\w.-]*\.ya?ml|\.env)$/.test(item.name)) {
          this.#texts.set(item.name, await collect(item.body, item.name));
        } else if (this.#texts.has(item.name)) this.#texts.delete(item.name);
      }
    }
    for (const path of this.#extra.keys()) {
      this.#parents(path, this.#names.length);
      this.#entries.set(path, { kind: 'file', linkTarget: null, layer: this.#names.length, serial: -1 });
    }
    this.#judgeLinks();
  }

  /** Each archive was judged by itself; a directory of one may be a link of a later one. */
  #judgeLinks(): void {
    const look = (path: string) => {
      const { kind = null, linkTarget } = this.#entries.get(path) ?? {};
      return kind === 'symlink' ? { linkTo: linkTarget ?? '' } : kind;
    };
    for (const [path, { linkTarget }] of this.#entries) {
      if (linkTarget === null || !goesUpAgain(linkTarget)) continue;
      const lead = judgeLink(look, path, linkTarget);
      if (!('refused' in lead)) continue;
      throw new SandboxerError('SBX_PATH_REFUSED', `${path} → ${linkTarget} leads ${lead.refused}.`, {
        creation: 'not_created',
        remedy: `Write the link ${path} without a ".." behind a name.`,
      });
    }
  }

  /** An archive need not name the directories of its files. */
  #parents(path: string, layer: number): void {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const parent = path.slice(0, slash);
      if (this.#entries.has(parent)) return;
      this.#entries.set(parent, { kind: 'directory', linkTarget: null, layer, serial: -1 });
    }
  }
}

function tooLarge(what: string): SandboxerError {
  return new SandboxerError('SBX_PAYLOAD_TOO_LARGE', `The shipped tree has ${what}.`, {
    creation: 'not_created',
  });
}

async function collect(body: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > LARGEST_TEXT) throw tooLarge(`a file ${name} that is too large to be read`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
