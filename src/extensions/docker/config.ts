import { z } from 'zod';
import type { CapabilityVector, ResourceName } from '../../contract/extensions/capability.ts';
import { BooleanInput } from '../../contract/profiles/inputs.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import type { ChannelKind } from './container-config.ts';
import type { TlsFiles } from './endpoint.ts';
import type { EngineFacts } from './engine-facts.ts';
import type { Levels } from './levels.ts';
import type { SshOptions } from './ssh-connector.ts';

export interface RegistryLogin {
  readonly username: string;
  /** Its value is fetched when something is pulled, and kept nowhere. */
  password(signal: AbortSignal): Promise<string>;
}

export interface ImagePolicy {
  /** Patterns with `*`. One without a registry's host matches only names without one. */
  readonly allow: readonly string[];
  readonly pull: 'never' | 'missing' | 'always';
  /** Whether a reference must name its content (`name@sha256:…`). */
  readonly requireDigest: boolean;
  /** By host of the registry. */
  readonly logins: Readonly<Record<string, RegistryLogin>>;
}

export interface DockerOptions {
  /** As `DOCKER_HOST` is written. */
  readonly url: string;
  readonly tls: TlsFiles | null;
  /** For `ssh://`. */
  readonly ssh?: SshOptions;
  /** `<state_dir>/docker`: the sockets of local engines' sandboxes. */
  readonly directory: string;
  /** What the image `host` means here; `null`: profiles that name it cannot run here. */
  readonly defaultImage: string | null;
  readonly images: ImagePolicy;
  /** The engine's network for profiles with an open one; `null`: there is none to be had. */
  readonly network: string | null;
  /** `auto`: over a mounted directory where the engine is here, otherwise by a relay, and without the agent where it cannot run. */
  readonly channel?: 'auto' | ChannelKind;
  /** Whether the storage driver keeps `disk_mb` where that cannot be told by asking it. */
  readonly diskQuota?: boolean;
  /** Most containers that are kept running ahead of their claim; 0 turns it off. */
  readonly warm?: number;
  /** Where the engine stands. */
  readonly regions?: readonly string[];
  readonly defaultPids?: number;
  readonly defaultMemoryShare?: number;
  /** Longest wait for an answer of the engine. */
  readonly timeoutMs?: number;
  /** Path of the agent. Default: `agent/build/sandboxer-agent`. */
  readonly agent?: string;
}

export const DockerInputs = z.object({
  read_only_root: BooleanInput.default(false).describe('Whether the root of the container is read-only.'),
});

export function wantsReadOnlyRoot({ inputs }: Recipe): boolean {
  return DockerInputs.parse(inputs).read_only_root;
}

export const DEFAULTS = { warm: 0, pids: 4096, memoryShare: 0.8, timeoutMs: 60_000 } as const;

/** Drivers that bound a container's disk whatever lies below them. */
const QUOTA_DRIVERS = ['btrfs', 'zfs', 'devicemapper'];

export function canLimitDisk(facts: EngineFacts, options: Pick<DockerOptions, 'diskQuota'>): boolean {
  return QUOTA_DRIVERS.includes(facts.driver) || options.diskQuota === true;
}

/**
 * Only what this engine can keep to. One that was not there to be asked has what every supported one has. On a `bare` one
 * the agent runs nowhere.
 */
export function capabilitiesOf(
  facts: EngineFacts | null,
  options: DockerOptions,
  levels: Levels,
  bare = false,
): CapabilityVector {
  const limits: readonly (readonly [ResourceName, boolean])[] = [
    ['cpu', facts?.cpu ?? true],
    ['memory_mb', facts?.memory ?? true],
    ['pids', facts?.pids ?? true],
    ['disk_mb', facts !== null && canLimitDisk(facts, options)],
    ['open_files', true],
  ];
  return {
    isolation: ['container', ...levels.offered.keys()],
    egress: 'none',
    deny_all: true,
    open_network: options.network !== null,
    credentials: ['file', 'env'],
    dead_man: 'none',
    snapshot: 'filesystem',
    snapshot_destructive: false,
    fork: true,
    pause: 'frozen',
    persistence: ['ephemeral', 'persistent'],
    exec: true,
    pty: true,
    background: !bare,
    files: true,
    watch: !bare,
    ports: !bare,
    ssh: false,
    resources: limits.filter(([, kept]) => kept).map(([name]) => name),
    images: options.defaultImage === null ? ['reference'] : ['host', 'reference'],
    regions: [...(options.regions ?? [])],
    gpu: [],
    max_ttl_seconds: null,
    pricing: 'free',
    latency_class: 'fast',
    hosting: 'self-hosted',
    no_new_privs: true,
    host_root: false,
    elevated: false,
    demo: false,
  };
}
