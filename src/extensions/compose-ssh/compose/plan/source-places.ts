/**
 * Places of mount and build sources on the host. The engine follows links in a source when a container starts, also when it is
 * started again, and a build reads its context whenever it runs. A source that a container may write to from above or below could
 * become a link to anywhere in the meantime: such a source gets a place of its own, made before any container runs. Files of
 * secrets and configs always do.
 */
import type { ServiceModel } from '../model/stack-model.ts';
import type { TreeView } from '../tree/tree-view.ts';

export interface Copy {
  readonly from: string;
  readonly to: string;
  /** `link`: files are shared with the tree, so that writes appear in both; `copy`: they are not. */
  readonly how: 'link' | 'copy';
}

function isBelow(path: string, directory: string): boolean {
  return path !== directory && (directory === '' || path.startsWith(`${directory}/`));
}

function inTree(path: string): string {
  return path === '' ? 'tree' : `tree/${path}`;
}

export class SourcePlaces {
  /** Sources to copy from the tree to places of their own; files of secrets and configs join on request. */
  readonly copies: Copy[] = [];
  /** Sources that are not in the tree: empty directories, as the engine would make them. */
  readonly missing: readonly string[];
  readonly #ownBinds: ReadonlyMap<string, string>;
  readonly #writable: ReadonlySet<string>;
  readonly #others = new Map<string, string>();

  constructor(services: Iterable<ServiceModel>, tree: TreeView) {
    const sources = new Set<string>();
    const writable = new Set<string>();
    for (const { mounts } of services) {
      for (const mount of mounts) {
        if (mount.type !== 'bind' || 'outside' in mount.source) continue;
        sources.add(mount.source.inside);
        if (!mount.readOnly) writable.add(mount.source.inside);
      }
    }
    const own = [...sources]
      .filter((source) => [...writable].some((directory) => isBelow(source, directory)))
      .sort();
    this.#writable = writable;
    this.#ownBinds = new Map(own.map((source, n) => [source, `binds/${n}`]));
    this.missing = [...sources]
      .filter((source) => source !== '' && tree.kind(source) === null)
      .map((source) => inTree(source));
    for (const [source, to] of this.#ownBinds) this.copies.push({ from: inTree(source), to, how: 'link' });
  }

  /** Returns the place of a bind, from the top of the stack’s directory: `tree/data`, `binds/0`. */
  bind(source: string): string {
    return this.#ownBinds.get(source) ?? inTree(source);
  }

  /** Returns the mounts that a service that mounts `source` needs below it in addition. */
  inner(source: string): readonly { readonly place: string; readonly below: string }[] {
    return [...this.#ownBinds]
      .filter(([other]) => isBelow(other, source))
      .map(([other, place]) => ({ place, below: source === '' ? other : other.slice(source.length + 1) }));
  }

  /** Returns the directory that an image is built from. */
  context(source: string): string {
    const isTouched = [...this.#writable].some(
      (directory) => directory === source || isBelow(source, directory) || isBelow(directory, source),
    );
    return isTouched ? this.#own('builds', source, 'link') : inTree(source);
  }

  /** Returns the place of a file that is mounted or read by itself. */
  file(source: string): string {
    return this.#own('grants', source, 'copy');
  }

  #own(room: string, source: string, how: Copy['how']): string {
    const key = `${room}/${source}`;
    const known = this.#others.get(key);
    if (known !== undefined) return known;
    const place = `${room}/${this.#others.size}`;
    this.#others.set(key, place);
    this.copies.push({ from: inTree(source), to: place, how });
    return place;
  }
}
