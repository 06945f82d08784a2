import type { ExitStatus, ProcessInfo, Signal, TerminalSize } from '../../contract/sandboxes/exec.ts';
import type { FileChange, FileEntry } from '../../contract/sandboxes/files.ts';

export interface AbortableOptions {
  readonly signal?: AbortSignal;
}

export interface SpawnSpec {
  /** Program and arguments, passed as they are: no shell in between. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly user: string | null;
  /** Kills the whole process tree when it passes. */
  readonly timeoutSeconds: number | null;
  /** A pseudo-terminal of this size instead of pipes. */
  readonly terminal: TerminalSize | null;
  /** Whether input will follow; without it the program reads end-of-file at once. */
  readonly stdin: boolean;
  /** Whether the program keeps running when no caller is attached; its recent output is kept for a reconnect. */
  readonly background: boolean;
}

export interface OutputChunk {
  readonly stream: 'stdout' | 'stderr' | 'terminal';
  /** Bytes of all output before this chunk. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** Called once by a reader that needs `data` no more: its memory can then be used again. */
  done?(): void;
}

/** Output that was produced but is no longer kept. */
export interface OutputGap {
  readonly stream: 'gap';
  readonly offset: number;
  readonly missing: number;
}

/**
 * A process inside a sandbox. `output` may be iterated once and ends when all output was delivered; a slow reader
 * slows the program down and never grows a buffer. A program that cannot be started ends with 127 (not found) or 126
 * and reports why on stderr, as a shell would.
 */
export interface SandboxProcess {
  readonly id: string;
  readonly output: AsyncIterable<OutputChunk | OutputGap>;
  /** Resolves when the program ended and its output was read; never rejects before the channel is lost. */
  readonly exit: Promise<ExitStatus>;
  write(data: Uint8Array): Promise<void>;
  endInput(): Promise<void>;
  /** Signals the whole process tree. A process that has ended is not an error. */
  kill(signal: Signal): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Stops reading. A foreground process is killed, a background one runs on. */
  detach(): Promise<void>;
}

export interface FileReadOptions extends AbortableOptions {
  readonly offset?: number;
  readonly length?: number;
}

/**
 * The entries of a tree that are not in its archive, because the user of the sandbox may not read them or their names are too
 * long.
 */
export interface LeftOut {
  readonly count: number;
  /** The first of them, from the top of the tree. */
  readonly paths: readonly string[];
}

export interface TreeReadOptions extends AbortableOptions {
  /**
   * Called before the archive ends, if something is left out of it. Without this callback, such a tree is refused as a whole.
   * Agents know it.
   */
  readonly onLeftOut?: (left: LeftOut) => void;
}

export interface FileWriteOptions extends AbortableOptions {
  readonly mode?: number;
  /** Refuse instead of replacing. */
  readonly exclusive?: boolean;
  /** Refuse, with nothing written, where the place is not on a file system in memory. Agents know it. */
  readonly toMemory?: boolean;
}

/**
 * Files of a sandbox. Paths are resolved inside it; a relative one starts at the working directory of its default
 * user. Errors are `SBX_PATH_NOT_FOUND` and `SBX_PATH_REFUSED`.
 */
export interface SandboxFiles {
  stat(path: string, options?: AbortableOptions): Promise<FileEntry>;
  list(
    path: string,
    options?: AbortableOptions & { readonly limit?: number },
  ): Promise<{ entries: FileEntry[]; truncated: boolean }>;
  read(path: string, options?: FileReadOptions): Promise<{ size: number; body: AsyncIterable<Uint8Array> }>;
  /** Replaces the file as a whole: a reader sees the old content or the new, never half. Makes missing parents. */
  write(path: string, body: AsyncIterable<Uint8Array>, options?: FileWriteOptions): Promise<FileEntry>;
  mkdir(
    path: string,
    options: AbortableOptions & { readonly parents: boolean; readonly mode: number },
  ): Promise<void>;
  move(from: string, to: string, options: AbortableOptions & { readonly overwrite: boolean }): Promise<void>;
  /** Removing what is not there succeeds. */
  remove(path: string, options: AbortableOptions & { readonly recursive: boolean }): Promise<void>;
  /**
   * Resolves once changes are followed: every change after that is reported. Ends without an error when its signal does or the
   * path itself is gone.
   */
  watch?(
    path: string,
    options: AbortableOptions & { readonly recursive: boolean },
  ): Promise<AsyncIterable<FileChange>>;
  /** Unpacks a tar stream below `path`; entries that would leave it are refused and nothing outside is touched. */
  upload(
    path: string,
    tar: AsyncIterable<Uint8Array>,
    options?: AbortableOptions,
  ): Promise<{ files: number }>;
  /** Packs the tree at `path` as a tar stream. */
  download(path: string, options?: TreeReadOptions): Promise<AsyncIterable<Uint8Array>>;
}

/** A byte stream to a TCP port inside. */
export interface PortConnection {
  readonly readable: AsyncIterable<Uint8Array>;
  write(data: Uint8Array): Promise<void>;
  end(): Promise<void>;
  destroy(): void;
}

export interface ServiceLogOptions extends AbortableOptions {
  /** The number of lines from its end; all that is kept when `null`. */
  readonly tail: number | null;
  /** Whether to go on until the service ends or the reader stops. */
  readonly follow: boolean;
}

/** The output of a service, as that of a program: read once, bounded, let go by `detach`. */
export type ServiceLog = Pick<SandboxProcess, 'id' | 'output' | 'exit' | 'detach'>;

/** The services that a sandbox is made of. Every name given to it is one of `names`. */
export interface SandboxServices {
  readonly names: readonly string[];
  /** The one that the session itself is of. */
  readonly first: string;
  /**
   * The session of one service. It is closed with the session it comes from. Ids of its processes are known to that one,
   * too.
   */
  session(name: string): SandboxSession;
  logs(name: string, options: ServiceLogOptions): Promise<ServiceLog>;
}

/** The channel into one sandbox. It may be opened many times; closing it ends nothing that runs in the background. */
export interface SandboxSession {
  spawn(spec: SpawnSpec, options?: AbortableOptions): Promise<SandboxProcess>;
  /** Reconnects to a background process, from the output offset that the caller has reached. */
  attach?(processId: string, from: number, options?: AbortableOptions): Promise<SandboxProcess>;
  processes?(options?: AbortableOptions): Promise<ProcessInfo[]>;
  readonly files?: SandboxFiles;
  dial?(port: number, options?: AbortableOptions): Promise<PortConnection>;
  /** Exist where the vector has `services`. */
  readonly services?: SandboxServices;
  /** Whether its connection is known to be gone: the caller then opens another session. Left out where that cannot be known. */
  readonly isLost?: boolean;
  close(): Promise<void>;
}
