import { SandboxerError } from '../../contract/errors/errors.ts';
import type { GitRef } from '../recipe/git-ref.ts';
import type { TreeInput, TreeInputName } from '../recipe/tree-input.ts';
import type { ExtensionHeader } from './extension.ts';
import type { AbortableOptions } from './session.ts';

/** The file trees of one sandbox. */
export interface InputTrees {
  readonly list: readonly TreeInput[];
  /**
   * The named tree as a tar stream: files, directories and links that stay inside, checked when it was staged. It may be
   * opened again and again. Rejects with `SBX_NOT_FOUND` when there is no such tree (any more).
   */
  open(name: TreeInputName, options?: AbortableOptions): Promise<AsyncIterable<Uint8Array>>;
}

export const NO_INPUTS: InputTrees = {
  list: [],
  open: async (name) => {
    throw new SandboxerError('SBX_NOT_FOUND', `This sandbox has no input "${name}".`);
  },
};

/** An archive that has been received and checked, under no name yet. */
export interface StagedArchive {
  readonly digest: string;
  readonly sizeBytes: number;
  readonly entries: number;
  /** Stores the archive under this id, then calls `commit`, which makes it known. No other operation touches the id meanwhile. */
  keep<T>(id: string, commit: () => Promise<T>): Promise<T>;
  /** Forgets it, unless it was kept. */
  discard(): Promise<void>;
}

export interface FetchedTree {
  readonly commit: string;
  readonly archive: AsyncIterable<Uint8Array>;
}

export interface UploadLimits {
  readonly uploadBytes: number;
  readonly uploadEntries: number;
  /** The most bytes of all uploads that a workspace has at a time. */
  readonly workspaceBytes: number;
  /** How long an upload waits for its sandbox. */
  readonly keepMs: number;
}

/** Stores archives, and fetches those that are not uploaded. */
export interface InputPort {
  readonly limits: UploadLimits;
  /** Hosts of repositories that callers with a key may name. */
  readonly gitHosts: readonly string[];
  /** Rejects with `SBX_PATH_REFUSED` when something in it has no place in a workspace. */
  stage(archive: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<StagedArchive>;
  /** Rejects with `SBX_NOT_FOUND`. */
  open(id: string): Promise<AsyncIterable<Uint8Array>>;
  /** Yields the table of contents of an archive, a JSON document on each line. Rejects with `SBX_NOT_FOUND`. */
  entries(id: string): Promise<AsyncIterable<Uint8Array>>;
  /** Removes the archive if `commit` says so. */
  drop(id: string, commit: () => Promise<boolean>): Promise<void>;
  /** Archives that were last touched before this time. */
  kept(before: number): Promise<readonly string[]>;
  /** Fetches one commit and hands its tree to `use`. Rejects with `SBX_REF_REFUSED` or `SBX_FETCH_FAILED`. */
  fetch<T>(
    git: GitRef,
    credential: string | null,
    signal: AbortSignal | undefined,
    use: (tree: FetchedTree) => Promise<T>,
  ): Promise<T>;
  /** A directory or file of this machine. */
  pack(path: string): AsyncIterable<Uint8Array>;
}

/**
 * The directory of the trees: below the home of the sandbox's default user. Programs start there when there is something in it.
 */
export const WORKSPACE = 'workspace';

/** Returns where programs start by default: the workspace, if it is known to exist; `null` for the home directory. */
export function startDirectory(
  { inputs }: { readonly inputs: readonly TreeInput[] },
  header: Pick<ExtensionHeader, 'shipsInputs'> | undefined,
): string | null {
  return inputs.length > 0 && header !== undefined && header.shipsInputs !== true ? WORKSPACE : null;
}
