import type { TlsFiles } from '../engine/endpoint.ts';
import type { EngineFacts } from '../engine/engine-facts.ts';
import type { SshOptions } from '../engine/ssh-connector.ts';
import type { ChannelKind } from './container-config.ts';

export interface RegistryLogin {
  readonly username: string;
  /** Fetches the password for each pull; it is not stored. */
  password(signal: AbortSignal): Promise<string>;
}

export interface ImagePolicy {
  /** Patterns with `*`. One without a registry's host matches only names without one. */
  readonly allow: readonly string[];
  readonly pull: 'never' | 'missing' | 'always';
  /** Whether a reference must name its content (`name@sha256:…`). */
  readonly requireDigest: boolean;
  /** Logins by host of the registry. */
  readonly logins: Readonly<Record<string, RegistryLogin>>;
}

export interface DockerOptions {
  /** The engine's address in the form of `DOCKER_HOST`. */
  readonly url: string;
  readonly tls: TlsFiles | null;
  /** Options for `ssh://`. */
  readonly ssh?: SshOptions;
  /** `<state_dir>/docker`: the sockets of local engines' sandboxes. */
  readonly directory: string;
  /** The image that `host` stands for; `null`: profiles that name it cannot run here. */
  readonly defaultImage: string | null;
  readonly images: ImagePolicy;
  /** The engine's network for profiles with an open one; `null`: none. */
  readonly network: string | null;
  /** `auto`: over a mounted directory for a local engine, otherwise by a relay, and without the agent where it cannot run. */
  readonly channel?: 'auto' | ChannelKind;
  /** Whether the storage driver enforces `disk_mb`, where the engine does not report that. */
  readonly diskQuota?: boolean;
  /** Most containers started ahead of their claim; 0 turns it off. */
  readonly warm?: number;
  /** Regions of the engine. */
  readonly regions?: readonly string[];
  readonly defaultPids?: number;
  readonly defaultMemoryShare?: number;
  /** Longest wait for an answer of the engine. */
  readonly timeoutMs?: number;
  /** Path of the agent. Default: `agent/build/sandboxer-agent`. */
  readonly agent?: string;
}

export const DEFAULTS = { warm: 0, pids: 4096, memoryShare: 0.8, timeoutMs: 60_000 } as const;

/** Drivers that bound a container's disk on any file system. */
const QUOTA_DRIVERS = ['btrfs', 'zfs', 'devicemapper'];

export function canLimitDisk(facts: EngineFacts, options: Pick<DockerOptions, 'diskQuota'>): boolean {
  return QUOTA_DRIVERS.includes(facts.driver) || options.diskQuota === true;
}
