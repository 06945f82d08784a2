import { createHash } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Look } from '../../archive/link-judge.ts';
import { ANY_TREE, goesUpFrom, judgeLink, partsOf } from '../../archive/link-judge.ts';
import type { TarEntry } from '../../archive/tar/format.ts';
import { readTar } from '../../archive/tar/read-tar.ts';
import { diskLook } from '../../trees/disk-look.ts';
import type { PackChoice } from '../../trees/pack-rules.ts';
import { PackRules } from '../../trees/pack-rules.ts';
import { HostDirectory, InTheWay } from './host-directory.ts';
import { allowedBy, decidesUploads, isHostExecuted, makesRepository } from './host-executed.ts';
import { planSync } from './plan-sync.ts';
import type { Tree } from './tree-entry.ts';
import { entryOf, sameEntry, treeOfDirectory } from './tree-entry.ts';

export interface SyncOptions extends PackChoice {
  /** Reports the planned changes, and makes none. */
  readonly dryRun?: boolean | undefined;
  /** Takes the version inside where both sides changed. */
  readonly force?: boolean | undefined;
  /** Patterns as in `.gitignore` of host-executed files that may be written all the same. */
  readonly allow?: readonly string[] | undefined;
}

export interface NotTaken {
  readonly path: string;
  readonly reason: string;
}

export interface SyncReport {
  readonly written: readonly string[];
  readonly deleted: readonly string[];
  /** Paths changed on both sides: left as they are here. */
  readonly conflicts: readonly NotTaken[];
  /** Paths changed inside, and not written because of their kind. */
  readonly withheld: readonly NotTaken[];
  readonly dryRun: boolean;
}

interface Inside {
  readonly tree: Tree;
  readonly withheld: NotTaken[];
  /** Path of the file that holds the content of a changed file, by its name. */
  readonly content: ReadonlyMap<string, string>;
}

/** Returns a verdict as `judgeFor` explains it. `link` is the target of a link, `start` the first bytes of a file. */
type Judge = (
  path: string,
  isDirectory: boolean,
  link?: string | null,
  start?: string,
) => Promise<string | null>;

/** Number of first bytes that show the kind of a file. */
const START_BYTES = 64;

class Gathering {
  readonly tree: Tree = new Map();
  readonly withheld: NotTaken[] = [];
  readonly content = new Map<string, string>();
  readonly #base: Tree;
  readonly #directory: string;
  readonly #judge: Judge;
  #staged = 0;

  constructor(base: Tree, directory: string, judge: Judge) {
    this.#base = base;
    this.#directory = directory;
    this.#judge = judge;
  }

  async take(entry: TarEntry): Promise<void> {
    const path = partsOf(entry.name).join('/');
    if (path === '') return;
    const staged = entry.kind === 'file' ? await this.#stage(entry) : null;
    const found = entryOf(entry.kind, entry.mode, staged?.digest ?? null, entry.linkTarget);
    const was = this.#base.get(path);
    const unchanged = sameEntry(was, found);
    if (staged && unchanged) await rm(staged.path);
    const reason = unchanged ? null : await this.#reason(path, entry, staged?.start);
    if (reason === null) {
      this.tree.set(path, found);
      if (staged && !unchanged) this.content.set(path, staged.path);
      return;
    }
    // Treated as untouched inside.
    if (was) this.tree.set(path, was);
    if (reason !== '') this.withheld.push({ path, reason });
  }

  async #reason(path: string, entry: TarEntry, start?: string): Promise<string | null> {
    if (path.split('/').includes('..')) return 'its name leads out of the directory';
    if (entry.kind === 'symlink') {
      const lead = judgeLink(ANY_TREE, path, entry.linkTarget ?? '');
      if ('refused' in lead) return `it links to ${entry.linkTarget}, ${lead.refused}`;
    }
    return this.#judge(path, entry.kind === 'directory', entry.linkTarget, start);
  }

  async #stage(entry: TarEntry): Promise<{ path: string; digest: string; start: string }> {
    this.#staged += 1;
    const path = join(this.#directory, String(this.#staged));
    const file = await open(path, 'w', 0o600);
    const hash = createHash('sha256');
    let start = '';
    try {
      for await (const part of entry.body) {
        hash.update(part);
        if (start.length < START_BYTES) start += Buffer.from(part).toString('latin1', 0, START_BYTES);
        await file.write(part);
      }
    } finally {
      await file.close();
    }
    return { path, digest: `sha256:${hash.digest('hex')}`, start };
  }
}

/**
 * Returns the judge of a path. `null`: may be written; `''`: stays inside, as it would have stayed here; otherwise the reason why
 * it is held back.
 */
function judgeFor(directory: string, options: SyncOptions): Judge {
  const rules = new PackRules(directory, options);
  const allowed = allowedBy(options.allow ?? []);
  return async (path, isDirectory, link = null, start = ''): Promise<string | null> => {
    if (allowed(path)) return null;
    if (isHostExecuted(path)) return 'programs of this machine may run it';
    if (decidesUploads(path)) return 'it decides what is uploaded from here';
    if (link !== null && isHostExecuted(join(dirname(path), link)))
      return `it links to ${link}, which programs of this machine may run`;
    if (makesRepository(path, link ?? start)) return 'it makes a repository, whose settings git would run';
    const leftOut = await rules.leavesOutPath(path, isDirectory);
    if (leftOut === 'secret') return 'it may hold secrets';
    return leftOut === null ? null : '';
  };
}

interface GatherOptions {
  readonly directory: string;
  readonly scratch: string;
  readonly options: SyncOptions;
}

async function gather(
  tar: AsyncIterable<Uint8Array>,
  base: Tree,
  { directory, scratch, options }: GatherOptions,
): Promise<Inside> {
  const judge = judgeFor(directory, options);
  const inside = new Gathering(base, scratch, judge);
  for await (const entry of readTar(tar)) await inside.take(entry);
  // A file deleted inside that may not be touched here counts as still there.
  for (const [path, was] of base) {
    if (inside.tree.has(path)) continue;
    const reason = await judge(path, was.kind === 'directory');
    if (reason === null) continue;
    inside.tree.set(path, was);
    if (reason !== '') inside.withheld.push({ path, reason });
  }
  return inside;
}

/** Returns one text for all spellings that some file system takes for the same name. */
function folded(path: string): string {
  return path.normalize('NFKC').toLowerCase();
}

/**
 * Decides why a link may not be written now: because of a file here, which no chain of links may use to lead out, or because
 * another link needs a directory in its place.
 */
class LinkWall {
  readonly #look: Look;
  readonly #needed: ReadonlySet<string>;
  readonly #isAllowed: (path: string) => boolean;

  constructor(look: Look, here: Tree, options: SyncOptions) {
    const links = [...here].filter(([, { kind }]) => kind === 'symlink');
    this.#look = look;
    this.#needed = new Set(links.flatMap(([path, { content }]) => goesUpFrom(path, content)).map(folded));
    this.#isAllowed = allowedBy(options.allow ?? []);
  }

  reason(path: string, target: string): string | null {
    const lead = judgeLink(this.#look, path, target);
    if ('refused' in lead) return `it links to ${target}, ${lead.refused}`;
    if (this.#needed.has(folded(path))) return 'a link goes up from it, as from a directory';
    if (!isHostExecuted(lead.to) || this.#isAllowed(path)) return null;
    return `it leads to ${lead.to}, which programs of this machine may run`;
  }
}

/** Tree that a sync would leave here. */
function lookAfter(inside: Tree, directory: string): Look {
  const onDisk = diskLook(directory);
  return (path) => {
    const entry = inside.get(path);
    if (entry === undefined) return onDisk(path);
    return entry.kind === 'symlink' ? { linkTo: entry.content } : entry.kind;
  };
}

/** Order: links after all paths that they may need, the rest by name. */
function linksLast(paths: readonly string[], tree: Tree): string[] {
  const isLink = (path: string) => tree.get(path)?.kind === 'symlink';
  return [...paths.filter((path) => !isLink(path)), ...paths.filter(isLink)];
}

/** Order: the longest paths first, so that the content of a directory goes before it. */
function inOrder(paths: readonly string[]): string[] {
  return [...paths].sort((a, b) => b.length - a.length);
}

/**
 * Brings changes made inside since `base` to the directory. `tar` is the present workspace, and not trusted. Returns a report;
 * `base` becomes the state that both sides have in common.
 */
export async function syncMirror(
  tar: AsyncIterable<Uint8Array>,
  directory: string,
  base: Tree,
  options: SyncOptions = {},
): Promise<SyncReport> {
  const { dryRun = false, force = false } = options;
  const scratch = await mkdtemp(join(tmpdir(), 'sandboxer-sync-'));
  try {
    const inside = await gather(tar, base, { directory, scratch, options });
    const here = await treeOfDirectory(directory, (path) => inside.tree.has(path) || base.has(path));
    const { steps, conflicts } = planSync(base, here, inside.tree, force);
    const clashes: NotTaken[] = conflicts.map((path) => ({ path, reason: 'it changed here and inside' }));
    const host = new HostDirectory(directory);
    const look = dryRun ? lookAfter(inside.tree, directory) : diskLook(directory);
    const wall = new LinkWall(look, here, options);
    const done = { write: [] as string[], delete: [] as string[] };
    const attempt = async (path: string, action: 'write' | 'delete') => {
      const entry = inside.tree.get(path);
      const reason = entry?.kind === 'symlink' ? wall.reason(path, entry.content) : null;
      if (reason !== null) {
        inside.withheld.push({ path, reason });
        return;
      }
      try {
        if (dryRun) {
          done[action].push(path);
          return;
        }
        if (entry) await host.write(path, here.get(path), entry, inside.content.get(path) ?? '');
        else await host.remove(path, here.get(path));
        done[action].push(path);
      } catch (error) {
        if (error instanceof InTheWay) clashes.push({ path, reason: error.message });
        else if ((error as NodeJS.ErrnoException).code !== 'EILSEQ') throw error;
        else inside.withheld.push({ path, reason: 'this file system takes no such name' });
      }
    };
    const pathsOf = (action: string) =>
      steps.filter((step) => step.action === action).map(({ path }) => path);
    for (const path of inOrder(pathsOf('delete'))) await attempt(path, 'delete');
    for (const path of linksLast(pathsOf('write'), inside.tree)) await attempt(path, 'write');
    if (!dryRun) advance(base, here, inside.tree, done);
    return {
      written: done.write.sort(),
      deleted: done.delete.sort(),
      conflicts: clashes.sort((a, b) => (a.path < b.path ? -1 : 1)),
      withheld: inside.withheld.sort((a, b) => (a.path < b.path ? -1 : 1)),
      dryRun,
    };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function advance(base: Tree, here: Tree, inside: Tree, done: { write: string[]; delete: string[] }): void {
  for (const path of done.delete) {
    base.delete(path);
    here.delete(path);
  }
  for (const path of done.write) here.set(path, inside.get(path) as never);
  for (const [path, entry] of inside) if (sameEntry(here.get(path), entry)) base.set(path, entry);
  for (const path of [...base.keys()]) if (!inside.has(path) && !here.has(path)) base.delete(path);
}
