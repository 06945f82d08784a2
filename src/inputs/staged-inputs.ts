import { SandboxerError } from '../contract/errors/errors.ts';
import type { FetchedTree, InputPort, UploadLimits } from '../core/ports/inputs.ts';
import type { GitRef } from '../core/recipe/git-ref.ts';
import { BlobStore } from './blob-store.ts';
import { fetchRepository } from './git/fetch-repository.ts';
import type { GitOptions } from './git/git-options.ts';

export interface StagedInputsOptions {
  readonly directory: string;
  readonly limits: UploadLimits;
  readonly gitHosts: readonly string[];
  readonly git: GitOptions;
  /** A directory or file of this machine as a tar stream. */
  pack(path: string): AsyncIterable<Uint8Array>;
}

/** Fetches that run at a time; the others wait. */
const MOST_FETCHES = 4;

/** Fetches, checks and stores the file trees of requests. */
export class StagedInputs implements InputPort {
  readonly limits: UploadLimits;
  readonly gitHosts: readonly string[];
  readonly #blobs: BlobStore;
  readonly #options: StagedInputsOptions;
  readonly #waiting: (() => void)[] = [];
  #fetches = 0;

  constructor(options: StagedInputsOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.gitHosts = options.gitHosts;
    this.#blobs = new BlobStore(options.directory, options.limits);
  }

  stage: InputPort['stage'] = (archive, signal) => this.#blobs.stage(archive, signal);
  open: InputPort['open'] = (id) => this.#blobs.open(id);
  entries: InputPort['entries'] = (id) => this.#blobs.entries(id);
  drop: InputPort['drop'] = (id, commit) => this.#blobs.drop(id, commit);
  kept: InputPort['kept'] = (before) => this.#blobs.kept(before);

  async *pack(path: string): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#options.pack(path);
    } catch (error) {
      if (!('code' in (error as object))) throw error;
      const { code } = error as NodeJS.ErrnoException;
      throw new SandboxerError('SBX_INVALID_REQUEST', `${path} cannot be read here (${code}).`, {
        creation: 'not_created',
      });
    }
  }

  async fetch<T>(
    git: GitRef,
    credential: string | null,
    signal: AbortSignal | undefined,
    use: (tree: FetchedTree) => Promise<T>,
  ): Promise<T> {
    while (this.#fetches >= MOST_FETCHES) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#fetches += 1;
    try {
      signal?.throwIfAborted();
      return await this.#blobs.scratch((directory) =>
        fetchRepository({ git, credential, options: this.#options.git, directory, signal }, use),
      );
    } finally {
      this.#fetches -= 1;
      this.#waiting.shift()?.();
    }
  }
}
