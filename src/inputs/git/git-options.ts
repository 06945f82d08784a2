import type { LookupFunction } from 'node:net';

export interface GitOptions {
  /** Returns the address of a host, if fetches from it are allowed: the address that is checked is the one that is dialled. */
  readonly lookup: LookupFunction;
  readonly timeoutMs: number;
  /** The most bytes that a fetch may write to the disk. */
  readonly mostBytes: number;
  /** Certificate authorities besides the system's. */
  readonly caFile: string | null;
  /** The keys of ssh hosts; without it, none is known and ssh is refused. */
  readonly knownHostsFile: string | null;
}
