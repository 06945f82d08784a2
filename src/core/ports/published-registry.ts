/** A file of a registry, by its path within `registry/`. */
export interface RegistryFile {
  readonly file: string;
  readonly text: string;
}

export interface RegistryProblem {
  readonly file: string;
  readonly problem: string;
}

/** The result at a federation: a new registration, a changed one, or files in a directory. */
export type PublishedAs = 'registered' | 'updated' | 'written';

/** A federation of capability registries (reuse-surface) that the configuration names. */
export interface RegistryPublisher {
  /** The place of the federation, without credentials. */
  readonly target: string;
  /** Throws a `SandboxerError` that says what to correct. A second call publishes again. */
  publish(files: readonly RegistryFile[], signal: AbortSignal): Promise<PublishedAs>;
}

/** The registry folder of this installation, its check, and where it is published. */
export interface PublishedRegistry {
  files(): Promise<readonly RegistryFile[]>;
  /** Returns what is wrong with each file, and between them where a capability entry is among them. */
  check(files: readonly RegistryFile[]): Promise<readonly RegistryProblem[]>;
  /** `null` while `reuse_surface` is not configured. */
  readonly publisher: RegistryPublisher | null;
}
